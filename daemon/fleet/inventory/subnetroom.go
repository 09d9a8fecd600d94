package inventory

import (
	"cnictl/capacity/subnet"
	"cnictl/daemon/fleet/store"
)

// SubnetRoom is what additional nodes could still take from a subnet, as far as the read nodes show: a
// block in which they hold addresses is no longer a free block. Of the other addresses that EC2
// counts as taken, only the number is known. False if the subnet has no known count of free
// addresses.
func SubnetRoom(u store.SubnetUse) (subnet.Subnet, bool) {
	if Usable(u.Range) == 0 || u.Available == nil {
		return subnet.Subnet{}, false
	}
	s, err := subnet.Parse(u.Range.String())
	if err != nil {
		return subnet.Subnet{}, false
	}
	others := s.Free - *u.Available
	s.Free = min(max(*u.Available, 0), s.Free)
	blocks := SubnetCells(u)
	for _, b := range u.Blocks {
		i, ok := indexOf(u.Range, b.Prefix)
		if !ok || i < 0 || i >= len(blocks) {
			continue
		}
		others -= b.Held
		switch edge := i == 0 || i == len(blocks)-1; {
		case edge:
			s.Loose -= b.Held
		case b.Use == store.BlockPrefix:
			s.Blocks--
		default:
			s.Blocks--
			s.Loose += blockSize - b.Held
		}
	}
	s.Blocks, s.Loose, s.Used = max(s.Blocks, 0), max(s.Loose, 0), max(others, 0)
	return s, true
}
