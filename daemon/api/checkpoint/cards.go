package checkpoint

import (
	"strconv"
	"strings"
)

// maxCards bounds the network cards of an instance; none has so many.
const maxCards = 128

// nic comes between the name of the file and the number of a further card.
const nic = "-nic-"

// CardPath is the file of a further card: "-nic-<n>" comes before ".json".
func CardPath(path string, card int) string {
	base, isJSON := strings.CutSuffix(path, ".json")
	base += nic + strconv.Itoa(card)
	if isJSON {
		base += ".json"
	}
	return base
}

// CardOfName is the further card that a file beside that of card 0 is of.
func CardOfName(first, name string) (card int, ok bool) {
	base, isJSON := strings.CutSuffix(first, ".json")
	number, ok := strings.CutPrefix(name, base+nic)
	if isJSON && ok {
		number, ok = strings.CutSuffix(number, ".json")
	}
	card, err := strconv.Atoi(number)
	// The number is compared as text: "+1" and "01" are none of ours.
	return card, ok && err == nil && card > 0 && card < maxCards && strconv.Itoa(card) == number
}
