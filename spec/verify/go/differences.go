package main

import "strings"

// difference is a point where the package does not do what the vectors say: a reason, and the vectors that show it.
type difference struct {
	reason  string
	action  string
	applies func(*Vector) bool
}

func named(parts ...string) func(*Vector) bool {
	return func(v *Vector) bool {
		for _, part := range parts {
			if strings.Contains(v.Name, part) {
				return true
			}
		}
		return false
	}
}

var differences = []difference{
	{"a heartbeat on a channel is refused by the reader, not by what is above it", "read", named("heartbeat on channel")},
	{"reserved fields keep the value that was read", "write", named("reserved fields with values")},
	{"confirm.select spells its field Nowait", "read", named("confirm.select")},
	{"properties without a value are not written, cluster-id never", "write", func(v *Vector) bool {
		_, there := v.Properties["cluster-id"]
		return there || v.Name == "all, smallest"
	}},
	{"a map holds a key once", "write", named("the same key twice")},
	{"tables nest 32 deep", "read", named("64 levels")},
	{"the tag L is unknown", "read", named("L ")},
	{"what follows the last property is not looked at", "refuse", named("header and a byte more")},
	{"a content header's weight is not looked at", "refuse", named("weight ")},
	{"property flags without a property are not looked at", "refuse", named("flags 0x")},
	{"an array ends where the input does", "refuse", named("A of 1 bytes", "A of 2147483647 bytes")},
}
