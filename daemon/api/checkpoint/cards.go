package checkpoint

import (
	"strconv"
	"strings"
)

// maxCards bounds the network cards of an instance; no instance type has as many.
const maxCards = 128

// nic stands between the base name of the file and the number of a further card.
const nic = "-nic-"

// CardPath returns the file of a further card: "-nic-<n>" is inserted before ".json".
func CardPath(path string, card int) string {
	base, isJSON := strings.CutSuffix(path, ".json")
	base += nic + strconv.Itoa(card)
	if isJSON {
		base += ".json"
	}
	return base
}

// CardOfName returns the further card that a file next to card 0's file belongs to.
func CardOfName(first, name string) (card int, ok bool) {
	base, isJSON := strings.CutSuffix(first, ".json")
	number, ok := strings.CutPrefix(name, base+nic)
	if isJSON && ok {
		number, ok = strings.CutSuffix(number, ".json")
	}
	card, err := strconv.Atoi(number)
	// The number is compared as text, so that "+1" and "01" are rejected.
	return card, ok && err == nil && card > 0 && card < maxCards && strconv.Itoa(card) == number
}
