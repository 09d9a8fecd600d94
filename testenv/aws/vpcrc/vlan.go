package vpcrc

import "fmt"

// vlanSlots is the number of VLAN ids per trunk in upstream; 0 is reserved.
const vlanSlots = 121

// vlans marks the VLAN ids of a trunk that are in use.
type vlans [vlanSlots]bool

// take reserves the lowest free id.
func (v *vlans) take() (int, error) {
	for id := 1; id < vlanSlots; id++ {
		if !v[id] {
			v[id] = true
			return id, nil
		}
	}
	return 0, fmt.Errorf("failed to find free vlan id in the available %d ids", vlanSlots)
}

func (v *vlans) free(id int) {
	v[id] = false
}
