package skel

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"cnictl/plugin/netconf"
)

// maxShown bounds what is shown of a value that others chose, in bytes: an event of
// Kubernetes has 1024 for everything.
const maxShown = 128

// Bounded cuts a value that is shown.
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

// Quoted quotes a value and cuts it.
func Quoted(s string) string {
	if len(s) <= maxShown {
		return strconv.Quote(s)
	}
	return Bounded(strconv.Quote(s))
}

// SettingDetails is about a value of the network configuration; empty if the error is
// about something else.
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
