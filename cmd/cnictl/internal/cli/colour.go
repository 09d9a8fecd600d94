package cli

// Lookup reads an environment variable.
type Lookup func(name string) (value string, set bool)

// colourOn decides whether output is coloured: by --color, else NO_COLOR, CLICOLOR_FORCE,
// CLICOLOR and TERM in this order, else by whether there is a terminal.
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
