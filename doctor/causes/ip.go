package causes

import (
	"fmt"
	"strings"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
	"cnictl/doctor/evidence"
)

var ipRules = []rule{
	{code: "ip/subnet-exhausted", node: subnetExhausted},
	{code: "ip/prefix-fragmented", node: prefixFragmented},
	{code: "ip/cooldown-saturated", node: cooldownSaturated},
}

// grown are lines of a pool that grew.
var grown = []string{"Allocated … private IP", "Successfully created and attached a new ENI"}

// shortSubnet states that EC2 refuses for lack of addresses now.
func (c *Case) shortSubnet(texts ...string) Fact {
	return either(
		c.active(mention{sources: []string{"log.ipamd"}, texts: texts, cured: grown}),
		c.failures(cause.SubnetExhausted, cause.SubnetFragmented),
	)
}

func subnetExhausted(c *Case) []candidate {
	p := c.pool()
	subnets, known := c.candidates()
	ids := subnetIDs(subnets)
	counted := fact(c, c.R.Subnets, "ec2.subnet", "availableIPs of "+or(ids, "the node's subnets"), "enough for one request", func([]evidence.Subnet) (any, State) {
		if !known || p == nil {
			return nil, Unread
		}
		return freeAddresses(subnets), stateOf(len(subnets) > 0 && fullest(subnets) < c.request(p))
	})
	refused := c.shortSubnet("InsufficientFreeAddressesInSubnet", "There aren't sufficient free Ipv4 addresses or prefixes")
	telling := counted
	if counted.State == Unread {
		telling = refused // EC2's own answer, where its counts are not known
	}
	return []candidate{{
		scope:    introspect.FindingScope{Subnet: ids},
		summary:  fmt.Sprintf("no address can be assigned: %s; %s", poolText(p), freeAddresses(subnets)),
		telling:  []Fact{telling},
		required: []Fact{c.dry(), c.short(), c.growable()},
		context:  []Fact{c.failing(), refused},
	}}
}

func prefixFragmented(c *Case) []candidate {
	p := c.pool()
	subnets, known := c.candidates()
	counted := fact(c, c.R.Subnets, "ec2.subnet", "availableIPs of "+or(subnetIDs(subnets), "the node's subnets"), "fewer than one prefix needs", func([]evidence.Subnet) (any, State) {
		if !known || p == nil {
			return nil, Unread
		}
		return freeAddresses(subnets), stateOf(fullest(subnets) >= c.request(p))
	})
	return []candidate{{
		scope:    introspect.FindingScope{Subnet: subnetIDs(subnets)},
		summary:  fmt.Sprintf("EC2 finds no aligned /28: %s; %s", poolText(p), freeAddresses(subnets)),
		telling:  []Fact{c.shortSubnet("InsufficientCidrBlocks", "There aren't sufficient free Ipv4 addresses or prefixes")},
		required: []Fact{c.prefixMode(), c.dry()},
		supporting: []Fact{counted, fact(c, c.R.Reservations, "ec2.resv", "prefix reservations", "one with room", func(all []evidence.Reservation) (any, State) {
			return len(all), stateOf(len(all) == 0)
		})},
	}}
}

// prefixMode states that prefixes are what the node hands out.
func (c *Case) prefixMode() Fact {
	f := c.setting("ENABLE_PREFIX_DELEGATION", "false", func(config.Config) bool { return c.prefixes() })
	return f
}

func cooldownSaturated(c *Case) []candidate {
	p := c.pool()
	cooling := c.onPool("cooling addresses", "fewer than the free ones", func(p *pool) (any, State) { return p.cooling, stateOf(p.cooling > 0) })
	return []candidate{{
		summary:  fmt.Sprintf("every free address is cooling down for %s: %s", c.cooldown(), poolText(p)),
		telling:  []Fact{cooling},
		required: []Fact{c.dry(), not(c.short())},
	}}
}

func poolText(p *pool) string {
	if p == nil {
		return "the pool is unknown"
	}
	return p.String()
}

func subnetIDs(subnets []evidence.Subnet) string {
	var ids []string
	for _, s := range subnets {
		ids = append(ids, s.ID)
	}
	return strings.Join(ids, ", ")
}

// freeAddresses lists the free addresses of subnets.
func freeAddresses(subnets []evidence.Subnet) string {
	var parts []string
	for _, s := range subnets {
		free := "an unknown number"
		if s.Available != nil {
			free = fmt.Sprint(*s.Available)
		}
		parts = append(parts, fmt.Sprintf("%s has %s free", s.ID, free))
	}
	return or(strings.Join(parts, ", "), "no subnet is known")
}

// fullest is the largest number of free addresses that a subnet has.
func fullest(subnets []evidence.Subnet) int {
	most := 0
	for _, s := range subnets {
		if s.Available != nil {
			most = max(most, *s.Available)
		}
	}
	return most
}
