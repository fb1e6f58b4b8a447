// Sends one command to duepost and waits until it is committed there.
//
//	go run . ROUTING_KEY < command.json
//
// Exit codes: 0 accepted, 65 refused (either way the answer is on stdout), 64 wrong usage,
// 75 no answer: the outcome is unknown, so run it again with the same command and key,
// 77 the broker does not let this user in, or send that.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// replyTo is the broker's own way back: no queue to declare, so the user needs no right but to publish.
const replyTo = "amq.rabbitmq.reply-to"
const tries = 5

var (
	url      = env("AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/")
	exchange = env("DUEPOST_COMMANDS", "duepost.commands")
)

// ask is one try; an error means that nobody knows what became of the command.
func ask(routingKey string, body []byte, key string, patience time.Duration) ([]byte, error) {
	connection, err := amqp.DialConfig(url, amqp.Config{
		Heartbeat: 10 * time.Second,
		Dial:      amqp.DefaultDial(patience),
	})
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		return nil, err
	}
	if err := channel.Confirm(false); err != nil {
		return nil, err
	}
	returned := channel.NotifyReturn(make(chan amqp.Return, 1))
	closed := channel.NotifyClose(make(chan *amqp.Error, 1))
	answers, err := channel.Consume(replyTo, "", true, false, false, false, nil)
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	correlationID := newID()
	const mandatory, immediate = true, false
	confirm, err := channel.PublishWithDeferredConfirmWithContext(ctx, exchange, routingKey, mandatory, immediate,
		amqp.Publishing{
			DeliveryMode:  amqp.Persistent,
			ContentType:   "application/json",
			MessageId:     key,
			ReplyTo:       replyTo,
			CorrelationId: correlationID,
			Body:          body,
		})
	if err != nil {
		return nil, err
	}
	// The confirm says that the broker has it; the answer, that duepost has committed it. An answer implies the confirm.
	confirmed := make(chan bool, 1)
	go func() { confirmed <- confirm.Wait() }()
	for {
		select {
		case answer, open := <-answers:
			if !open {
				return nil, whyClosed(closed)
			}
			if answer.CorrelationId == correlationID {
				return answer.Body, nil
			}
		case <-returned:
			return nil, fmt.Errorf("no queue behind %s: apply the topology", exchange)
		case acknowledged := <-confirmed:
			if !acknowledged {
				return nil, whyClosed(closed)
			}
		case <-ctx.Done():
			return nil, errors.New("no answer in time")
		}
	}
}

// whyClosed gives the broker's reason. A message is refused on an open channel, too: when its queue is full.
func whyClosed(closed <-chan *amqp.Error) error {
	select {
	case reason := <-closed:
		if reason != nil {
			return reason
		}
		return errors.New("the channel was closed")
	default:
		return errors.New("the broker refused the message")
	}
}

// isForbidden tells whether the broker will not have this user do that: trying again changes nothing.
func isForbidden(err error) bool {
	var reason *amqp.Error
	return errors.As(err, &reason) && (reason.Code == amqp.AccessRefused || reason.Code == amqp.NotAllowed)
}

func main() {
	body, err := io.ReadAll(os.Stdin)
	var command struct {
		Key string `json:"idempotency_key"`
	}
	if err != nil || json.Unmarshal(body, &command) != nil || command.Key == "" || len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . ROUTING_KEY < command.json, with an idempotency_key in it")
		os.Exit(64)
	}
	patience, err := time.ParseDuration(env("ANSWER_SECONDS", "10") + "s")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(64)
	}
	for n := 1; n <= tries; n++ {
		// The same bytes under the same key each time: however many of them arrive, they are one thing.
		answer, err := ask(os.Args[1], body, command.Key, patience)
		if isForbidden(err) {
			fmt.Fprintln(os.Stderr, "forbidden:", err)
			os.Exit(77)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "try %d of %d: %v\n", n, tries, err)
			time.Sleep(patience / 10)
			continue
		}
		fmt.Println(string(answer))
		var result struct {
			OK bool `json:"ok"`
		}
		if json.Unmarshal(answer, &result) != nil || !result.OK {
			// A refusal is final: the same command would be refused again.
			os.Exit(65)
		}
		return
	}
	os.Exit(75)
}

func newID() string {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		panic(err)
	}
	return fmt.Sprintf("%x", id)
}

func env(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}
