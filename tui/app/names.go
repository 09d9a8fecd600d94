package app

// Screens names the screens that can be asked for by name: those that stand alone.
func Screens() []string {
	var names []string
	for _, s := range digits() {
		names = append(names, s.name)
	}
	return names
}
