package skel

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"cnictl/plugin/netconf"
)

// maxShown limits how much of a value from outside is shown, in bytes: a Kubernetes event
// has 1024 for everything.
const maxShown = 128

// Bounded truncates a value for display.
func Bounded(s string) string {
	if len(s) <= maxShown {
		return s
	}
	end := maxShown
	for end > maxShown-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "... (" + strconv.Itoa(len(s)) + " bytes)"
}

// Quoted quotes and truncates a value.
func Quoted(s string) string {
	if len(s) <= maxShown {
		return strconv.Quote(s)
	}
	return Bounded(strconv.Quote(s))
}

// SettingDetails describes an invalid value in the network configuration; empty for any
// other error.
func SettingDetails(err error) string {
	var bad *netconf.Error
	if !errors.As(err, &bad) || bad.Field.Accepted == "" {
		return ""
	}
	what := "the network configuration"
	if bad.Field.Key != "" {
		what = "key " + strconv.Quote(bad.Field.Key) + " of " + what
	}
	return what + " (a file in /etc/cni/net.d) is " + Bounded(bad.Field.Value) + "; accepted is " + bad.Field.Accepted
}
