// Holds the vectors against amqp091-go: every vector is read and compared with its value, and written back and compared
// with its bytes.
package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
)

// Vector has the members of all files; each file uses some.
type Vector struct {
	Name       string                     `json:"name"`
	Bytes      string                     `json:"bytes"`
	EncodesAs  string                     `json:"encodes_as"`
	Kind       string                     `json:"kind"`
	Channel    uint16                     `json:"channel"`
	Payload    string                     `json:"payload"`
	ClassID    uint16                     `json:"class_id"`
	MethodID   uint16                     `json:"method_id"`
	Fields     map[string]json.RawMessage `json:"fields"`
	BodySize   uint64                     `json:"body_size"`
	Properties map[string]json.RawMessage `json:"properties"`
	Table      json.RawMessage            `json:"table"`
	What       string                     `json:"what"`
	Error      string                     `json:"error"`
	FrameMax   uint32                     `json:"frame_max"`
}

func (v *Vector) wire() []byte { return fromHex(v.Bytes) }

func (v *Vector) written() []byte {
	if v.EncodesAs != "" {
		return fromHex(v.EncodesAs)
	}
	return v.wire()
}

func fromHex(digits string) []byte {
	raw, err := hex.DecodeString(digits)
	if err != nil {
		panic(err)
	}
	return raw
}

func load(name string) []Vector {
	text, err := os.ReadFile(filepath.Join("..", "..", "vectors", name))
	if err != nil {
		panic(err)
	}
	var document struct {
		Format  int      `json:"format"`
		Vectors []Vector `json:"vectors"`
	}
	if err := json.Unmarshal(text, &document); err != nil || document.Format != 1 {
		panic(fmt.Sprintf("%s: format %d, %v", name, document.Format, err))
	}
	return document.Vectors
}

// report counts what agrees, and sorts what does not by the known differences.
type report struct {
	read, written, refused int
	differences            map[string]int
	failures               []string
}

func (r *report) note(v *Vector, action string, fine bool, found any) {
	if fine {
		switch action {
		case "read":
			r.read++
		case "write":
			r.written++
		default:
			r.refused++
		}
		return
	}
	known := false
	for _, d := range differences {
		if d.action == action && d.applies(v) {
			r.differences[d.reason]++
			known = true
		}
	}
	if !known {
		r.failures = append(r.failures, fmt.Sprintf("%s %s: %.200v", action, v.Name, found))
	}
}

func (r *report) finish() int {
	fmt.Printf("amqp091-go %s: %d vectors read, %d written, %d malformed ones refused\n", version(), r.read, r.written, r.refused)
	for _, d := range differences {
		fmt.Printf("  differs in %d (%s): %s\n", r.differences[d.reason], d.action, d.reason)
		if r.differences[d.reason] == 0 {
			r.failures = append(r.failures, "no longer so: "+d.reason)
		}
	}
	for _, failure := range r.failures {
		fmt.Println("  FAILED", failure)
	}
	return min(len(r.failures), 1)
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == "github.com/rabbitmq/amqp091-go" {
			return dependency.Version
		}
	}
	return "?"
}

// sameBytes also holds when a map came in another order.
func sameBytes(written, expected []byte) bool {
	if bytes.Equal(written, expected) {
		return true
	}
	return len(written) == len(expected) && bytes.Equal(sorted(written), sorted(expected))
}

func main() {
	r := &report{differences: map[string]int{}}
	checkFrames(r)
	checkMethods(r)
	checkHeaders(r)
	checkTables(r)
	checkMalformed(r)
	os.Exit(r.finish())
}
