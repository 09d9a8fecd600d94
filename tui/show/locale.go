package show

import "strings"

// UTF8 reports whether the locale uses UTF-8. As in the C library, the first of the three
// variables that is set decides, and without any the locale is C, which is ASCII. Without UTF-8
// only ASCII may be drawn.
func UTF8(env func(name string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
