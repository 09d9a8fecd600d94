package cli

import "strings"

// Lookup reads an environment variable.
type Lookup func(name string) (value string, set bool)

// colourOn decides once for the run whether output is coloured: --color first, then
// what the environment forces, then what it forbids, then whether there is a terminal.
func colourOn(mode string, tty bool, env Lookup) bool {
	value := func(name string) string { v, _ := env(name); return v }
	switch {
	case mode == "always":
		return true
	case mode == "never":
		return false
	case value("NO_COLOR") != "":
		return false
	case value("CLICOLOR_FORCE") != "" && value("CLICOLOR_FORCE") != "0":
		return true
	case value("CLICOLOR") == "0", value("TERM") == "dumb":
		return false
	}
	return tty
}

// utf8Locale tells whether the terminal can be expected to show more than ASCII: the
// first of the locale variables that is set decides, as in POSIX; none set is taken
// for a modern default.
func utf8Locale(env Lookup) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v, _ := env(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}
