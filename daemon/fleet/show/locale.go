package show

import "strings"

// UTF8 reports whether the locale is one that writes UTF-8: the first of the three variables
// that is set decides, as in the C library, and none set is its locale C, which is ASCII.
// Elsewhere only ASCII may be drawn.
func UTF8(env func(name string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
