package amqpcodec_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	amqp "courser/amqpcodec"
)

// A short string takes less time to write than a call takes.
func TestShortStringsAreWrittenAndReadInLine(t *testing.T) {
	// The compiler says so of what is used: this test has both kinds.
	text, _ := amqp.AppendShortString(nil, "text")
	if again, err := amqp.AppendShortString(nil, text[1:]); err != nil || string(again) != string(text) {
		t.Fatalf("%q and %q, %v", text, again, err)
	}
	output, err := exec.Command("go", "test", "-c", "-gcflags=-m", "-o", os.DevNull, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, name := range []string{"AppendShortString[go.shape.string]", "AppendShortString[go.shape.[]uint8]", "CutShortString"} {
		if !strings.Contains(string(output), "can inline amqpcodec."+name) && !strings.Contains(string(output), "can inline "+name) {
			t.Errorf("the compiler does not put %s in line", name)
		}
	}
}
