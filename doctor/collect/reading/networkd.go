package reading

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Networkd is what the files of systemd-networkd and udev say about links, rules and routes made
// by others.
type Networkd struct {
	LinkPolicy                  string // effective MACAddressPolicy of the pods' veths; empty if none is set
	ForeignRules, ForeignRoutes bool   // systemd-networkd removes those that it did not make
}

// ReadNetworkd reads the files below the directories systemd/network, systemd/networkd.conf and
// systemd/networkd.conf.d of /etc, /run and /usr/lib, by their full path. A file in /etc
// overrides that of the same name in /run, which overrides that in /usr/lib.
func ReadNetworkd(files map[string]string) Networkd {
	out := Networkd{ForeignRules: true, ForeignRoutes: true}
	conf := map[string]string{}
	main, _ := effective(files, "systemd", "networkd.conf")
	merge(conf, main, "Network")
	for _, name := range names(files, "systemd/networkd.conf.d", ".conf") {
		text, _ := effective(files, "systemd/networkd.conf.d", name)
		merge(conf, text, "Network")
	}
	out.ForeignRules = !no(conf["ManageForeignRoutingPolicyRules"])
	out.ForeignRoutes = !no(conf["ManageForeignRoutes"])
	for _, name := range names(files, "systemd/network", ".link") {
		text, _ := effective(files, "systemd/network", name)
		match := map[string]string{}
		merge(match, text, "Match")
		if !matchesVeth(match) {
			continue
		}
		link := map[string]string{}
		merge(link, text, "Link")
		for _, part := range names(files, "systemd/network/"+name+".d", ".conf") {
			text, _ := effective(files, "systemd/network/"+name+".d", part)
			merge(link, text, "Link")
		}
		out.LinkPolicy = link["MACAddressPolicy"]
		break // only the first match counts
	}
	return out
}

// places are where systemd looks; the last one wins.
var places = []string{"/lib", "/usr/lib", "/usr/local/lib", "/run", "/etc"}

// effective returns the file of that name that counts.
func effective(files map[string]string, dir, name string) (text string, ok bool) {
	for _, place := range places {
		if t, found := files[path.Join(place, dir, name)]; found {
			text, ok = t, true
		}
	}
	return text, ok
}

// names returns the names of the files in a directory, in all places, in the order in which
// systemd reads them.
func names(files map[string]string, dir, suffix string) []string {
	found := map[string]bool{}
	for _, place := range places {
		for file := range files {
			if path.Dir(file) == path.Join(place, dir) && strings.HasSuffix(file, suffix) {
				found[path.Base(file)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// merge adds the settings of one section of a file.
func merge(into map[string]string, text, section string) {
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			inside = line == "["+section+"]"
			continue
		}
		if name, value, ok := strings.Cut(line, "="); ok && inside && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
			into[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
}

// matchesVeth reports whether a .link file applies to the host end of a pod's veth pair. A
// file without a match section applies to nothing.
func matchesVeth(match map[string]string) bool {
	for name, value := range match {
		fits := func(candidate string) bool {
			return slices.ContainsFunc(strings.Fields(value), func(pattern string) bool {
				ok, err := path.Match(pattern, candidate)
				return err == nil && ok
			})
		}
		switch {
		case name == "OriginalName" && fits("eni00000000000"), name == "Driver" && fits("veth"), name == "Kind" && fits("veth"),
			name == "Type" && fits("ether"):
		default:
			return false
		}
	}
	return len(match) > 0
}

func no(value string) bool {
	switch strings.ToLower(value) {
	case "no", "false", "0", "n", "f", "off":
		return true
	}
	return false
}

// NetworkdPlaces returns the directories below which systemd looks.
func NetworkdPlaces() []string { return slices.Clone(places) }
