package human

import "cmp"

// Natural compares names as people order them: by the values of the numbers in them, so that
// node-4 comes before node-34. Names that differ only in leading zeros are ordered by their
// bytes: only identical names are equal.
func Natural(a, b string) int {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	if at == len(a) || at == len(b) {
		return cmp.Compare(len(a), len(b))
	}
	for at > 0 && digit(a[at-1]) {
		at-- // the number began before the difference
	}
	x, y := a[at:], b[at:]
	for x != "" && y != "" {
		if !digit(x[0]) || !digit(y[0]) {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		var m, n string
		m, x = number(x)
		n, y = number(y)
		if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

func digit(b byte) bool { return '0' <= b && b <= '9' }

// number splits off the leading digits of a text, without leading zeros.
func number(text string) (digits, rest string) {
	end := 0
	for end < len(text) && digit(text[end]) {
		end++
	}
	from := 0
	for from < end && text[from] == '0' {
		from++
	}
	return text[from:end], text[end:]
}
