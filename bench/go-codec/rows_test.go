// Package gocodec measures amqpcodec: the rows of bench/codec, on the same inputs and by the same names, so that benchstat
// sets them beside each other.
//
//	go test -bench . -benchmem                      with memory that the caller lends, and views
//	go test -bench . -benchmem -variant fresh       with a new buffer each time, and owned values
//	go test -bench . -benchmem -variant amqp091-go  the rows that amqp091-go has a public counterpart of
package gocodec

import (
	"flag"
	"fmt"
	"os"
	"testing"

	amqp "courser/amqpcodec"
)

var variant = flag.String("variant", "lent", "lent, fresh or amqp091-go")

func TestMain(m *testing.M) {
	flag.Parse()
	switch *variant {
	case "lent", "fresh", "amqp091-go":
		os.Exit(m.Run())
	default:
		fmt.Fprintf(os.Stderr, "no variant %q\n", *variant)
		os.Exit(2)
	}
}

// What results go to, so that none is left out.
var (
	raw    []byte
	text   string
	frame  amqp.Frame
	table  map[string]any
	entry  amqp.Entry
	header amqp.ContentHeader
	views  amqp.PropertiesView
)

// A row has a way of doing its work for each variant; nil leaves it out.
type row struct {
	name                string
	lent, fresh, client func(b *testing.B)
}

func run(b *testing.B, rows []row) {
	ran := false
	for _, r := range rows {
		do := map[string]func(*testing.B){"lent": r.lent, "fresh": r.fresh, "amqp091-go": r.client}[*variant]
		if do != nil {
			ran = true
			b.Run(r.name, func(b *testing.B) {
				b.ReportAllocs()
				do(b)
			})
		}
	}
	if !ran {
		b.SkipNow()
	}
}

func check(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

// appender is what can be appended to a buffer.
type appender interface {
	AppendBinary([]byte) ([]byte, error)
}

// encoding is a row that appends a value to a buffer.
func encoding(name string, value appender) row {
	return row{
		name: name,
		lent: func(b *testing.B) {
			lent := make([]byte, 0, 32*1024)
			for b.Loop() {
				var err error
				raw, err = value.AppendBinary(lent)
				check(b, err)
			}
		},
		fresh: func(b *testing.B) {
			for b.Loop() {
				var err error
				raw, err = value.AppendBinary(nil)
				check(b, err)
			}
		},
	}
}

// BenchmarkCopy is the yardstick: 1 KiB, and as many bytes as bench/codec's stream of publishes has.
func BenchmarkCopy(b *testing.B) {
	copying := func(size int) func(*testing.B) {
		return func(b *testing.B) {
			from, to := make([]byte, size), make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				copy(to, from)
			}
		}
	}
	run(b, []row{{name: "1KiB", lent: copying(1024)}, {name: "memcpy", lent: copying(4546560)}})
}
