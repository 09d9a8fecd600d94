package show

import (
	"math"
	"strconv"
	"strings"
)

// Sign is what stands for one state of an address, in bars, charts, strips and their
// legends alike: a shape of its own in either alphabet, so that colour is not needed.
type Sign struct{ Glyph, ASCII string }

// Pick is the sign in the alphabet there is.
func (s Sign) Pick(ascii bool) string {
	if ascii {
		return s.ASCII
	}
	return s.Glyph
}

// States of addresses. Others' are taken in a subnet by what is no node read here.
var (
	Used    = Sign{"█", "#"}
	Cooling = Sign{"▒", "%"}
	Free    = Sign{"░", "="}
	Room    = Sign{"·", "."} // not held
	Others  = Sign{"▓", "+"}
)

const (
	sparkRunes = "▁▂▃▄▅▆▇█"
	sparkASCII = "_.-=+*#%"
	levels     = 8
)

// Spark draws values between 0 and 1, a cell each, in eight levels. NaN is a gap: a
// blank. What lies outside is drawn as the lowest or the highest level.
func Spark(values []float64, ascii bool) string {
	var b strings.Builder
	b.Grow(len(values) * 3)
	for _, v := range values {
		if math.IsNaN(v) {
			b.WriteByte(' ')
			continue
		}
		level := int(min(max(v, 0), 1) * (levels - 0.5)) // the highest is for what is full or nearly
		if ascii {
			b.WriteByte(sparkASCII[level])
		} else {
			b.WriteString(sparkRunes[level*3 : level*3+3])
		}
	}
	return b.String()
}

// Rate prints a number of things per minute: 0.4, 12.
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
