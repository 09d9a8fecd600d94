package software

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Time returns the time of SOURCE_DATE_EPOCH, that of the revision; 1970 if not set.
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

// Sources makes inventories that find licences in the directories of this machine's Go.
func Sources() (func() *Inventory, error) {
	dirs, err := exec.Command("go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env, for where the licences are: %w", err)
	}
	cache, root, _ := strings.Cut(strings.TrimSpace(string(dirs)), "\n")
	return func() *Inventory { return New(cache, root) }, nil
}
