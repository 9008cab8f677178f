package conformance

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestTheBrokerSaysWhatItIs(t *testing.T) {
	connection := dial(t, amqp.Config{})
	for _, name := range []string{"product", "version", "platform", "copyright", "information", "cluster_name"} {
		if text, ok := connection.Properties[name].(string); !ok || text == "" {
			t.Errorf("%s is %v", name, connection.Properties[name])
		}
	}
	capabilities := connection.Properties["capabilities"].(amqp.Table)
	for _, name := range []string{
		"publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify",
		"connection.blocked", "consumer_priorities", "authentication_failure_close", "per_consumer_qos",
		"direct_reply_to",
	} {
		if capabilities[name] != true {
			t.Errorf("capability %s is %v", name, capabilities[name])
		}
	}
	equal(t, connection.Config.ChannelMax, 2047)
	equal(t, connection.Config.FrameSize, 131072)
}

func TestAWrongPasswordIsRefused(t *testing.T) {
	login := &amqp.PlainAuth{Username: "guest", Password: "no"}
	_, err := amqp.DialConfig(brokerURI(), amqp.Config{SASL: []amqp.Authentication{login}})
	var reason *amqp.Error
	if !errors.As(err, &reason) || reason.Code != 403 {
		t.Fatal(err)
	}
}

func TestAMQPlainIsSpoken(t *testing.T) {
	uri := must(amqp.ParseURI(brokerURI()))(t)
	login := &amqp.AMQPlainAuth{Username: uri.Username, Password: uri.Password}
	connection := dial(t, amqp.Config{SASL: []amqp.Authentication{login}, Vhost: uri.Vhost})
	must(connection.Channel())(t)
}

func TestAnUnknownVhostIsRefused(t *testing.T) {
	uri := must(amqp.ParseURI(brokerURI()))(t)
	_, err := amqp.DialConfig(brokerURI(), amqp.Config{SASL: []amqp.Authentication{uri.PlainAuth()}, Vhost: "nowhere"})
	var reason *amqp.Error
	if !errors.As(err, &reason) || (reason.Code != 403 && reason.Code != 530) {
		t.Fatal(err) // amqp091-go makes its own error of the first close
	}
}

func TestAllChannelsOfAConnection(t *testing.T) {
	connection := dial(t, amqp.Config{})
	var last *amqp.Channel
	for range 2047 {
		last = must(connection.Channel())(t)
	}
	check(t, last.Confirm(false))
	queue := exclusiveQueue(t, last)
	publishText(t, last, queue, "on the last channel")
	if _, err := connection.Channel(); !errors.Is(err, amqp.ErrChannelMax) {
		t.Fatal("the client knows the limit: ", err)
	}
}

func TestAChannelNumberIsReusedRightAfterClose(t *testing.T) {
	connection := dial(t, amqp.Config{ChannelMax: 2})
	for range 500 {
		channel := must(connection.Channel())(t)
		check(t, channel.Qos(1, 0, false))
		check(t, channel.Close())
	}
	// And right after the broker has closed it.
	for range 100 {
		channel := must(connection.Channel())(t)
		_, err := channel.QueueDeclarePassive("conformance.missing", false, false, false, false, nil)
		failsWith(t, err, 404, "NOT_FOUND - no queue 'conformance.missing' in vhost '/'")
	}
	must(connection.Channel())(t)
}

func TestManyConnectionsAtOnce(t *testing.T) {
	var group sync.WaitGroup
	for number := range 200 {
		group.Go(func() {
			connection, err := amqp.Dial(brokerURI())
			if err != nil {
				t.Error(err)
				return
			}
			defer connection.Close()
			channel, err := connection.Channel()
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := channel.QueueDeclare(fresh(fmt.Sprint(number)), false, false, true, false, nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestAnIdleConnectionLivesByHeartbeats(t *testing.T) {
	connection := dial(t, amqp.Config{Heartbeat: time.Second})
	channel := must(connection.Channel())(t)
	time.Sleep(4 * time.Second)
	exclusiveQueue(t, channel)
}

// silent is a connection whose writes can be switched off, so that the broker misses the heartbeats.
type silent struct {
	net.Conn
	off chan struct{}
}

func (s silent) Write(data []byte) (int, error) {
	select {
	case <-s.off:
		return len(data), nil
	default:
		return s.Conn.Write(data)
	}
}

func TestAClientThatFallsSilentIsDropped(t *testing.T) {
	off := make(chan struct{})
	uri := must(amqp.ParseURI(brokerURI()))(t)
	connection := must(amqp.DialConfig(brokerURI(), amqp.Config{
		SASL: []amqp.Authentication{uri.PlainAuth()}, Vhost: uri.Vhost, Heartbeat: time.Second,
		Dial: func(network, address string) (net.Conn, error) {
			socket, err := amqp.DefaultDial(5*time.Second)(network, address)
			return silent{socket, off}, err
		},
	}))(t)
	closed := connection.NotifyClose(make(chan *amqp.Error, 1))
	close(off)
	started := time.Now()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("the connection still stands")
	}
	if waited := time.Since(started); waited > 8*time.Second {
		t.Fatal("dropped only after ", waited)
	}
}

func TestAnExclusiveQueueIsFreeOnceItsConnectionIsClosed(t *testing.T) {
	name := fresh("q")
	for range 20 {
		connection := must(amqp.Dial(brokerURI()))(t)
		channel := must(connection.Channel())(t)
		must(channel.QueueDeclare(name, false, false, true, false, nil))(t)
		check(t, connection.Close())
	}
}
