package netstate

import "strings"

// Sysctl is a wanted kernel setting.
type Sysctl struct {
	Path  string // below /proc/sys; a link's name in it may contain dots
	Value string
	// ReadFirst: write only if it reads otherwise, because the write is expensive.
	ReadFirst bool
}

// IPv6Setting returns the path of a link's IPv6 setting.
func IPv6Setting(link, key string) string { return "net/ipv6/conf/" + link + "/" + key }

// Name returns the setting's name for the sysctl program.
func (s Sysctl) Name() string { return strings.ReplaceAll(s.Path, "/", ".") }

// Key returns the last part of the name.
func (s Sysctl) Key() string { return s.Path[strings.LastIndexByte(s.Path, '/')+1:] }

func (s Sysctl) String() string { return s.Name() + " = " + s.Value }
