package limits

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Table is the built-in table, with facts read from EC2 taking precedence. The zero Table
// is the built-in one.
type Table struct {
	read []Instance // sorted by type
}

// With returns the built-in table, overridden by types as EC2 reports them. EC2 reports
// neither trunking, branch ENIs nor the published figure, so these stay as built in,
// as does everything that EC2 left out.
func With(read []Instance) Table {
	t := Table{read: make([]Instance, 0, len(read))}
	for _, i := range read {
		t.read = append(t.read, merge(i))
	}
	slices.SortFunc(t.read, func(a, b Instance) int { return strings.Compare(a.Type, b.Type) })
	t.read = slices.CompactFunc(t.read, func(a, b Instance) bool { return a.Type == b.Type })
	return t
}

func merge(read Instance) Instance {
	built, known := Lookup(read.Type)
	if !known {
		read.TrunkingCompatible, read.BranchENIs, read.PublishedMaxENIs = Unknown, 0, 0
		return read
	}
	read.TrunkingCompatible, read.BranchENIs, read.PublishedMaxENIs = built.TrunkingCompatible, built.BranchENIs, built.PublishedMaxENIs
	if read.IPv6PerENI < 0 {
		read.IPv6PerENI = built.IPv6PerENI
	}
	if read.VCPUs == 0 {
		read.VCPUs = built.VCPUs
	}
	if read.MemoryMiB == 0 {
		read.MemoryMiB = built.MemoryMiB
	}
	if read.Arch == "" {
		read.Arch = built.Arch
	}
	return read
}

// Lookup returns the facts of an instance type such as "m5.large".
func (t Table) Lookup(instanceType string) (Instance, bool) {
	if n, ok := t.find(instanceType); ok {
		return t.read[n], true
	}
	return Lookup(instanceType)
}

// Read reports whether the facts of a type came from EC2.
func (t Table) Read(instanceType string) bool {
	_, ok := t.find(instanceType)
	return ok
}

func (t Table) find(instanceType string) (int, bool) {
	return slices.BinarySearchFunc(t.read, instanceType, func(i Instance, name string) int { return strings.Compare(i.Type, name) })
}

// Types yields every known type in byte order.
func (t Table) Types() iter.Seq[string] {
	return func(yield func(string) bool) {
		read := t.read
		for name := range Types() {
			for len(read) > 0 && read[0].Type <= name {
				if read[0].Type < name && !yield(read[0].Type) {
					return
				}
				read = read[1:]
			}
			if !yield(name) {
				return
			}
		}
		for _, i := range read {
			if !yield(i.Type) {
				return
			}
		}
	}
}

// Changed returns the types in read that the built-in table lacks or has different facts
// for, merged as by [With], sorted by name.
func Changed(read []Instance) (out []Instance) {
	for _, i := range With(read).read {
		if built, known := Lookup(i.Type); !known || !slices.Equal(built.Facts(), i.Facts()) {
			out = append(out, i)
		}
	}
	return out
}

// Fact is one fact of an instance type that EC2 reports, as text.
type Fact struct{ Name, Value string }

// Facts lists what EC2 reports about a type, in a fixed order and with fixed names; the
// value of an unknown fact is empty.
func (i Instance) Facts() []Fact {
	number := func(n, unknown int) string {
		if n == unknown {
			return ""
		}
		return strconv.Itoa(n)
	}
	cards := make([]string, 0, len(i.Cards))
	for _, c := range i.Cards {
		cards = append(cards, strconv.Itoa(c.Index)+":"+strconv.Itoa(c.MaxENIs))
	}
	return []Fact{
		{"enis", number(i.MaxENIs, 0)},
		{"networkCards", strings.Join(cards, "|")},
		{"defaultNetworkCard", strconv.Itoa(i.DefaultCard)},
		{"ipv4PerEni", number(i.IPv4PerENI, 0)},
		{"ipv6PerEni", number(i.IPv6PerENI, -1)},
		{"hypervisor", i.Hypervisor},
		{"bareMetal", strconv.FormatBool(i.BareMetal)},
		{"vcpus", number(i.VCPUs, 0)},
		{"memoryMiB", number(i.MemoryMiB, 0)},
		{"arch", i.Arch},
	}
}

// Limits for facts from outside; the largest known type is far below each.
const (
	maxTypeName  = 64
	maxCards     = 256
	maxENIs      = 1000    // of a card
	maxAddresses = 1024    // of an interface
	maxVCPUs     = 1 << 16 // of an instance
	maxMemoryMiB = 1 << 30 // 1 PiB
)

// Check returns an error that names the first fact that no instance type can have. Facts
// from EC2 and from files are checked before use.
func (i Instance) Check() error {
	family, size, dot := strings.Cut(i.Type, ".")
	switch {
	case !dot || !word(family) || !word(size) || len(i.Type) > maxTypeName:
		return fmt.Errorf("%.80q is not an instance type", i.Type)
	case i.Hypervisor != "" && i.Hypervisor != "nitro" && i.Hypervisor != "xen":
		return fmt.Errorf("%s: hypervisor %.80q: want nitro, xen or none", i.Type, i.Hypervisor)
	case i.Arch != "" && i.Arch != "amd64" && i.Arch != "arm64":
		return fmt.Errorf("%s: arch %.80q: want amd64 or arm64", i.Type, i.Arch)
	case len(i.Cards) == 0 || len(i.Cards) > maxCards:
		return fmt.Errorf("%s: %d network cards: want 1 to %d", i.Type, len(i.Cards), maxCards)
	}
	last, onDefault := -1, 0
	for _, c := range i.Cards {
		if c.Index <= last || c.Index >= maxCards || c.MaxENIs < 0 || c.MaxENIs > maxENIs {
			return fmt.Errorf("%s: network card %d with %d interfaces: want rising indices below %d and at most %d interfaces", i.Type, c.Index, c.MaxENIs, maxCards, maxENIs)
		}
		if last = c.Index; c.Index == i.DefaultCard {
			onDefault = c.MaxENIs
		}
	}
	if onDefault == 0 || i.MaxENIs != onDefault {
		return fmt.Errorf("%s: default network card %d takes %d interfaces, not %d: want the same number, at least 1", i.Type, i.DefaultCard, onDefault, i.MaxENIs)
	}
	for _, f := range []struct {
		name           string
		value, min, to int
	}{
		{"IPv4 addresses per interface", i.IPv4PerENI, 1, maxAddresses},
		{"IPv6 addresses per interface", i.IPv6PerENI, -1, maxAddresses},
		{"branch ENIs", i.BranchENIs, 0, maxENIs},
		{"vCPUs", i.VCPUs, 0, maxVCPUs},
		{"MiB of memory", i.MemoryMiB, 0, maxMemoryMiB},
	} {
		if f.value < f.min || f.value > f.to {
			return fmt.Errorf("%s: %d %s: want %d to %d", i.Type, f.value, f.name, f.min, f.to)
		}
	}
	return nil
}

// ClearImplausible makes those facts unknown that [Instance.Check] would refuse and that no
// count of addresses or interfaces depends on.
func (i *Instance) ClearImplausible() {
	if i.Hypervisor != "nitro" && i.Hypervisor != "xen" {
		i.Hypervisor = ""
	}
	if i.VCPUs < 0 || i.VCPUs > maxVCPUs {
		i.VCPUs = 0
	}
	if i.MemoryMiB < 0 || i.MemoryMiB > maxMemoryMiB {
		i.MemoryMiB = 0
	}
}

// word reports whether s has only characters of a family or a size.
func word(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
