package netstate

import "strings"

// Sysctl is a wanted kernel setting.
type Sysctl struct {
	Path  string // below /proc/sys; a link's name in it may hold dots
	Value string
	// ReadFirst: only write when it reads otherwise, because the write is dear.
	ReadFirst bool
}

// IPv6Setting is the path of a link's setting of IPv6.
func IPv6Setting(link, key string) string { return "net/ipv6/conf/" + link + "/" + key }

// Name is what sysctl calls the setting.
func (s Sysctl) Name() string { return strings.ReplaceAll(s.Path, "/", ".") }

// Key is the last part of the name.
func (s Sysctl) Key() string { return s.Path[strings.LastIndexByte(s.Path, '/')+1:] }

func (s Sysctl) String() string { return s.Name() + " = " + s.Value }
