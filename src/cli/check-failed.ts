/** A command did its work and found that something is not as it should be: exit code 1, and it has said what. */
export class CheckFailed extends Error {}
