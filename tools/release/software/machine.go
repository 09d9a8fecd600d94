package software

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Time is that of SOURCE_DATE_EPOCH: the revision's. Without it, it is 1970.
func Time() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// Sources makes inventories with the licences that this machine's Go has.
func Sources() (func() *Inventory, error) {
	dirs, err := exec.Command("go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env, for where the licences are: %w", err)
	}
	cache, root, _ := strings.Cut(strings.TrimSpace(string(dirs)), "\n")
	return func() *Inventory { return New(cache, root) }, nil
}
