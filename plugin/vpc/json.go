package vpc

import (
	"strconv"

	"cnictl/daemon/api/logline"
)

// object writes an indented JSON object, four spaces a level, as the CNI library
// prints results.
type object struct {
	b     []byte
	depth int
	some  bool // the object or list being written has a member
}

func (o *object) newline() {
	if o.some {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '\n')
	for range o.depth {
		o.b = append(o.b, "    "...)
	}
	o.some = true
}

func (o *object) open(bracket byte) {
	o.b = append(o.b, bracket)
	o.depth++
	o.some = false
}

func (o *object) close(bracket byte) {
	o.depth--
	if o.some {
		o.some = false
		o.newline()
	}
	o.b = append(o.b, bracket)
	o.some = true
}

func (o *object) key(k string) {
	o.newline()
	o.b = logline.AppendQuotedJSON(o.b, k)
	o.b = append(o.b, ": "...)
}

func (o *object) text(k, v string) {
	o.key(k)
	o.b = logline.AppendQuotedJSON(o.b, v)
}

// textIf leaves out an empty text.
func (o *object) textIf(k, v string) {
	if v != "" {
		o.text(k, v)
	}
}

func (o *object) number(k string, v int) {
	o.key(k)
	o.b = strconv.AppendInt(o.b, int64(v), 10)
}

// JSON is the error as printed on standard output.
func (e *cniError) JSON() []byte {
	var o object
	o.open('{')
	o.number("code", e.code)
	o.text("msg", e.msg)
	o.textIf("details", e.shown())
	o.close('}')
	return o.b
}
