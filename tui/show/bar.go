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
	levels     = len(sparkASCII)
)

// Spark draws the newest width values on a scale from 0 to top, one cell each, the last at the
// right, in eight levels. Only values of 0 or less are drawn as the lowest, those of top or more
// as the highest. NaN is a gap: a blank, not a zero.
func Spark(values []float64, width int, top float64, ascii bool) string {
	width = max(width, 0)
	values = values[max(0, len(values)-width):]
	var b strings.Builder
	b.Grow(width * 3)
	for range width - len(values) {
		b.WriteByte(' ')
	}
	for _, v := range values {
		if math.IsNaN(v) {
			b.WriteByte(' ')
			continue
		}
		b.WriteString(SparkCell(v, top, ascii))
	}
	return b.String()
}

// SparkCell is Spark's cell of one value.
func SparkCell(v, top float64, ascii bool) string {
	level := 0
	if v > 0 && top > 0 {
		level = levels - 1
		if v < top {
			level = max(int(math.Ceil(v/top*float64(levels)))-1, 1)
		}
	}
	if ascii {
		return sparkASCII[level : level+1]
	}
	return sparkRunes[level*3 : level*3+3]
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
