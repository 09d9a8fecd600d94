package show

import (
	"math"
	"strconv"
	"strings"
)

// Sign is the symbol for one state of an address in bars, charts, strips and their legends. Its
// shape is unique in either alphabet, so it works without colour.
type Sign struct{ Glyph, ASCII string }

// Pick returns the sign in the available alphabet.
func (s Sign) Pick(ascii bool) string {
	if ascii {
		return s.ASCII
	}
	return s.Glyph
}

// States of addresses. Others are taken in a subnet by anything except the read nodes.
var (
	Used    = Sign{"█", "#"}
	Cooling = Sign{"▒", "%"}
	Free    = Sign{"░", "="}
	Room    = Sign{"·", "."} // could still be added
	Others  = Sign{"▓", "+"}
)

const (
	sparkRunes = "▁▂▃▄▅▆▇█"
	sparkASCII = "_.-=+*#%"
	levels     = 8
)

// Spark draws values between 0 and 1, one cell each, in eight levels. NaN is a gap: a blank.
// Values outside are drawn as the lowest or the highest level.
func Spark(values []float64, ascii bool) string {
	var b strings.Builder
	b.Grow(len(values) * 3)
	for _, v := range values {
		if math.IsNaN(v) {
			b.WriteByte(' ')
			continue
		}
		level := int(min(max(v, 0), 1) * (levels - 0.5)) // the highest level is for full or nearly full
		if ascii {
			b.WriteByte(sparkASCII[level])
		} else {
			b.WriteString(sparkRunes[level*3 : level*3+3])
		}
	}
	return b.String()
}

// Rate formats a rate per minute: 0.4, 12.
func Rate(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return Unknown
	case v == 0:
		return "0"
	case math.Abs(v) < 9.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}
