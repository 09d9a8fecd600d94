package skel

import (
	"strconv"

	"cnictl/daemon/api/logline"
)

// Object writes JSON as the CNI library prints results: indented by four spaces a level.
type Object struct {
	b     []byte
	depth int
	some  bool // the object or list being written has a member
}

// Bytes returns the JSON written so far.
func (o *Object) Bytes() []byte { return o.b }

// Item starts the next element of a list.
func (o *Object) Item() {
	if o.some {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '\n')
	for range o.depth {
		o.b = append(o.b, "    "...)
	}
	o.some = true
}

// Open starts an object or list with its opening bracket.
func (o *Object) Open(bracket byte) {
	o.b = append(o.b, bracket)
	o.depth++
	o.some = false
}

// Close ends what Open started.
func (o *Object) Close(bracket byte) {
	o.depth--
	if o.some {
		o.some = false
		o.Item()
	}
	o.b = append(o.b, bracket)
	o.some = true
}

// Key starts the next member of an object.
func (o *Object) Key(k string) {
	o.Item()
	o.b = logline.AppendQuotedJSON(o.b, k)
	o.b = append(o.b, ": "...)
}

// Text writes a string member.
func (o *Object) Text(k, v string) {
	o.Key(k)
	o.b = logline.AppendQuotedJSON(o.b, v)
}

// TextIf writes a string member unless it is empty.
func (o *Object) TextIf(k, v string) {
	if v != "" {
		o.Text(k, v)
	}
}

// Number writes a number member.
func (o *Object) Number(k string, v int) {
	o.Key(k)
	o.b = strconv.AppendInt(o.b, int64(v), 10)
}

// NumberIf writes a number member unless it is zero.
func (o *Object) NumberIf(k string, v int) {
	if v != 0 {
		o.Number(k, v)
	}
}

// TextsIf writes a list of strings unless it is empty.
func (o *Object) TextsIf(k string, list []string) {
	if len(list) == 0 {
		return
	}
	o.Key(k)
	o.Open('[')
	for _, v := range list {
		o.Item()
		o.b = logline.AppendQuotedJSON(o.b, v)
	}
	o.Close(']')
}
