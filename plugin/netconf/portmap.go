package netconf

import "cnictl/daemon/api/netnames"

// PortmapConf is the part of the portmap plugin's configuration that decides whether it
// has anything to do.
type PortmapConf struct {
	CNIVersion    string
	Name          string
	RawPrevResult Raw // supplied by the runtime

	// Idle means that the pod has no host ports and that no other key can make the plugin
	// fail. It is false for anything that is not understood.
	Idle bool
}

// ParsePortmap parses the configuration of the portmap plugin. It returns no errors: an
// unexpected configuration is not Idle, and the plugin itself reports what is wrong.
func ParsePortmap(stdin []byte) (conf PortmapConf) {
	if checkSyntax(stdin) != nil {
		return conf
	}
	d := decoder{cursor: cursor{in: stdin}}
	if d.kind() != "object" {
		return conf
	}
	idle, seen := true, map[string]bool{}
	d.object(func(key string) {
		understood := d.portmapMember(&conf, key) // call it in any case: it reads the value
		idle = idle && understood && !seen[key]
		seen[key] = true
	})
	conf.Idle = idle && netnames.ValidName(conf.Name)
	return conf
}

// portmapMember reads the value of a key. It returns false if an idle plugin would not
// have it.
func (d *decoder) portmapMember(conf *PortmapConf, key string) bool {
	kind := d.kind()
	text := func(into *string) bool {
		if kind != "string" {
			d.raw()
			return false
		}
		*into = d.text()
		return true
	}
	var ignored string
	switch key {
	case "cniVersion":
		return text(&conf.CNIVersion)
	case "name":
		return text(&conf.Name)
	case "type":
		return text(&ignored)
	case "snat":
		d.raw()
		return kind == "bool"
	case "capabilities":
		d.capabilities(&map[string]bool{})
		return d.any == nil
	case "runtimeConfig":
		return d.noPorts()
	case "prevResult":
		conf.RawPrevResult = d.raw()
		return kind == "object"
	}
	d.raw()
	return false
}

// noPorts reads runtimeConfig and reports whether it names no port.
func (d *decoder) noPorts() bool {
	switch d.kind() {
	case "object":
	case "null":
		d.raw()
		return true
	default:
		d.raw()
		return false
	}
	none := true
	d.object(func(key string) {
		value := string(d.raw())
		// To encoding/json, keys that differ only in case are the same.
		if sameKey(key, "portMappings") && value != "null" && value != "[]" {
			none = false
		}
	})
	return none
}
