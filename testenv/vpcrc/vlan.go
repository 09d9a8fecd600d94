package vpcrc

import "fmt"

// vlanSlots is how many VLAN ids a trunk has in upstream; 0 is reserved.
const vlanSlots = 121

// vlans are the VLAN ids of a trunk that are not free.
type vlans [vlanSlots]bool

// take takes the lowest free id.
func (v *vlans) take() (int, error) {
	for id := 1; id < vlanSlots; id++ {
		if !v[id] {
			v[id] = true
			return id, nil
		}
	}
	return 0, fmt.Errorf("failed to find free vlan id in the available %d ids", vlanSlots)
}

// mark takes an id that is known to be in use. Upstream panics on one that is too high;
// here it is ignored.
func (v *vlans) mark(id int) {
	if id > 0 && id < vlanSlots {
		v[id] = true
	}
}

func (v *vlans) free(id int) {
	if id > 0 && id < vlanSlots {
		v[id] = false
	}
}
