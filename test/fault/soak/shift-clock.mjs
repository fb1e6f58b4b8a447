// Loaded before everything else (node --import): a host whose clock is wrong by SHIFT_CLOCK_MS.

const shiftMs = Number(process.env.SHIFT_CLOCK_MS);
const RightDate = Date;

class WrongDate extends RightDate {
  constructor(...given) {
    if (given.length === 0) super(RightDate.now() + shiftMs);
    else super(...given);
  }

  static now() {
    return RightDate.now() + shiftMs;
  }
}

globalThis.Date = WrongDate;
