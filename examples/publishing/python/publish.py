"""Sends one command to duepost and waits until it is committed there.

    python3 publish.py ROUTING_KEY < command.json

Exit codes: 0 accepted, 65 refused (either way the answer is on stdout), 64 wrong usage,
75 no answer: the outcome is unknown, so run it again with the same command and key,
77 the broker does not let this user in, or send that.
"""

import json
import os
import sys
import time
import uuid

import pika

URL = os.environ.get("AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/%2F")
EXCHANGE = os.environ.get("DUEPOST_COMMANDS", "duepost.commands")
PATIENCE = float(os.environ.get("ANSWER_SECONDS", "10"))
TRIES = 5
# The broker's own way back: no queue to declare, so the user needs no right but to publish.
REPLY_TO = "amq.rabbitmq.reply-to"


def ask(routing_key, body, key):
    """One try; raises when nobody knows what became of the command."""
    parameters = pika.URLParameters(URL)
    parameters.heartbeat = 10
    parameters.socket_timeout = parameters.stack_timeout = PATIENCE
    parameters.blocked_connection_timeout = PATIENCE
    connection = pika.BlockingConnection(parameters)
    try:
        channel = connection.channel()
        channel.confirm_delivery()
        correlation_id = str(uuid.uuid4())
        answers = []

        def on_answer(_channel, _method, properties, answer):
            if properties.correlation_id == correlation_id:
                answers.append(answer)

        channel.basic_consume(REPLY_TO, on_answer, auto_ack=True)
        # Returns when the broker has confirmed; raises NackError or, being mandatory, UnroutableError.
        channel.basic_publish(
            EXCHANGE,
            routing_key,
            body,
            pika.BasicProperties(
                delivery_mode=2,  # persistent
                content_type="application/json",
                message_id=key,
                reply_to=REPLY_TO,
                correlation_id=correlation_id,
            ),
            mandatory=True,
        )
        # The confirm says that the broker has it; the answer, that duepost has committed it.
        until = time.monotonic() + PATIENCE
        while not answers and time.monotonic() < until:
            connection.process_data_events(time_limit=max(0, until - time.monotonic()))
        if not answers:
            raise TimeoutError("no answer in time")
        return answers[0]
    finally:
        if connection.is_open:
            connection.close()


def read_key(body):
    try:
        return json.loads(body)["idempotency_key"]
    except (ValueError, TypeError, KeyError):
        return None


def is_forbidden(error):
    """Whether the broker will not have this user do that: trying again changes nothing."""
    refusals = (
        pika.exceptions.AuthenticationError,
        pika.exceptions.ProbableAuthenticationError,
        pika.exceptions.ProbableAccessDeniedError,
    )
    return isinstance(error, refusals) or getattr(error, "reply_code", 0) in (403, 530)


def main():
    body = sys.stdin.buffer.read()
    key = read_key(body)
    if len(sys.argv) != 2 or not isinstance(key, str):
        print("usage: publish.py ROUTING_KEY < command.json, with an idempotency_key in it", file=sys.stderr)
        return 64
    for n in range(1, TRIES + 1):
        try:
            # The same bytes under the same key each time: however many arrive, they are one thing.
            answer = ask(sys.argv[1], body, key)
        except (pika.exceptions.AMQPError, OSError) as error:
            if is_forbidden(error):
                print(f"forbidden: {error!r}", file=sys.stderr)
                return 77
            print(f"try {n} of {TRIES}: {error!r}", file=sys.stderr)
            time.sleep(PATIENCE / 10)
            continue
        print(answer.decode())
        # A refusal is final: the same command would be refused again.
        return 0 if json.loads(answer)["ok"] else 65
    return 75


if __name__ == "__main__":
    sys.exit(main())
