package metrics

import "sync"

// codes bounds the label values that come from outside: EC2 returns a few dozen codes, but
// a proxy between us and EC2 may return anything.
type codes struct {
	mu   sync.Mutex
	seen map[string]bool // guarded by mu
}

const (
	maxCodes   = 64 // distinct codes per daemon
	maxCodeLen = 64 // bytes; "InsufficientFreeAddressesInSubnet" has 33
	codeOther  = "Other"
)

// bounded returns a code if it looks like one and is among the first maxCodes, else
// codeOther. "" stays "".
func (c *codes) bounded(code string) string {
	if code == "" {
		return ""
	}
	if !looksLikeCode(code) {
		return codeOther
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[code] {
		return code
	}
	if len(c.seen) >= maxCodes {
		return codeOther
	}
	c.seen[code] = true
	return code
}

// looksLikeCode accepts letters, digits, dots, hyphens and underscores.
func looksLikeCode(code string) bool {
	if len(code) > maxCodeLen {
		return false
	}
	for _, r := range []byte(code) {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			continue
		}
		return false
	}
	return true
}
