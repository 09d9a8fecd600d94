package maxpods

import (
	"fmt"
	"strings"
	"testing"

	"cnictl/capacity/limits"
)

// calculated are the worked examples of the capacity reference, computed with the published
// script. Columns: type, E × L, vCPUs, settings, --show-max-allowed, default output.
const calculated = `
t2.micro 2 2 1 default 4 4
t2.nano 2 2 1 default 4 4
t3.nano 2 2 2 default 4 4
t3.micro 2 2 2 default 4 4
t3.small 3 4 2 default 11 11
t3.small 3 4 2 prefix 146 110
t3.medium 3 6 2 default 17 17
t3.medium 3 6 2 custom 12 12
t3.medium 3 6 2 prefix 242 110
t3.medium 3 6 2 prefix,custom 162 110
t3.large 3 12 2 default 35 35
t3.large 3 12 2 prefix 530 110
t3.xlarge 4 15 4 default 58 58
t4g.medium 3 6 2 default 17 17
t4g.large 3 12 2 prefix,custom 354 110
m5.large 3 10 2 default 29 29
m5.large 3 10 2 custom 20 20
m5.large 3 10 2 prefix 434 110
m5.large 3 10 2 prefix,custom 290 110
m5.large 3 10 2 eni2 20 20
m5.large 3 10 2 eni1 11 11
m5.large 3 10 2 prefix,eni1 146 110
m5.large 3 10 2 custom,eni1 2 2
m5.large 3 10 2 prefix,cni1.8 29 29
m5.large 3 10 2 eni9 29 29
m5.large 3 10 2 eni0 2 2
m5.xlarge 4 15 4 default 58 58
m5.xlarge 4 15 4 custom 44 44
m5.2xlarge 4 15 8 default 58 58
m5.4xlarge 8 30 16 default 234 110
m5.4xlarge 8 30 16 custom 205 110
m5.4xlarge 8 30 16 prefix 3714 110
m5.8xlarge 8 30 32 default 234 234
m5.8xlarge 8 30 32 prefix 3714 250
m5.12xlarge 8 30 48 default 234 234
m5.16xlarge 15 50 64 default 737 250
m5.24xlarge 15 50 96 default 737 250
m5.24xlarge 15 50 96 custom 688 250
m5.24xlarge 15 50 96 prefix 11762 250
m5.metal 15 50 96 default 737 250
m5.metal 15 50 96 prefix 737 250
m4.large 2 10 2 default 20 20
m4.large 2 10 2 prefix 20 20
m4.xlarge 4 15 4 default 58 58
m4.4xlarge 8 30 16 default 234 110
m4.10xlarge 8 30 40 default 234 234
c5.large 3 10 2 default 29 29
c5.4xlarge 8 30 16 default 234 110
c5.4xlarge 8 30 16 custom 205 110
c5.4xlarge 8 30 16 prefix 3714 110
c5.9xlarge 8 30 36 default 234 234
c5.18xlarge 15 50 72 default 737 250
c5.18xlarge 15 50 72 custom 688 250
c6g.medium 2 4 1 default 8 8
c6g.medium 2 4 1 prefix 98 98
c6g.medium 2 4 1 prefix,custom 50 50
c6in.32xlarge 8 50 128 default 394 250
c6in.32xlarge 8 50 128 custom 345 250
m7g.16xlarge 15 50 64 default 737 250
c6g.metal 15 50 64 prefix 737 250
c8i.large 3 20 2 default 59 59
c8i.large 3 20 2 custom 40 40
c8i.xlarge 4 30 4 default 118 110
m8i.8xlarge 10 50 32 default 492 250
m9g.medium 2 20 1 default 40 40
c8i.96xlarge 24 64 384 default 1514 250
r8g.48xlarge 15 50 192 default 737 250
g6e.48xlarge 10 50 192 default 492 250
g7e.48xlarge 10 64 192 default 632 250
p4d.24xlarge 15 50 96 default 737 250
p5.48xlarge 2 50 192 default 100 100
p5.48xlarge 2 50 192 custom 51 51
p5.48xlarge 2 50 192 prefix 1570 250
p5en.48xlarge 4 50 192 default 198 198
p6-b300.48xlarge 4 50 192 default 198 198
trn1.32xlarge 5 50 128 default 247 247
trn2.48xlarge 2 50 192 default 100 100
trn2.48xlarge 2 50 192 prefix,custom 786 250
hpc7a.96xlarge 2 50 192 default 100 100
u7in-32tb.224xlarge 8 50 896 default 394 250
i3.16xlarge 15 50 64 prefix 737 250
p3dn.24xlarge 15 50 96 default 737 250
d3en.8xlarge 4 20 32 default 78 78
c8in.96xlarge 12 64 384 default 758 250
`

type example struct {
	i           limits.Instance
	e, l, vcpus int
	settings    string
	most, rec   int
}

func (x example) has(setting string) bool {
	return strings.Contains(","+x.settings+",", ","+setting+",")
}

func (x example) maxENI(t *testing.T) *int {
	t.Helper()
	for _, word := range strings.Split(x.settings, ",") {
		if n, ok := strings.CutPrefix(word, "eni"); ok {
			v := int(n[0] - '0')
			return &v
		}
	}
	return nil
}

func examples(t *testing.T) []example {
	t.Helper()
	rows := strings.Split(strings.TrimSpace(calculated), "\n")
	if len(rows) != 84 {
		t.Errorf("%d rows, the reference has 84", len(rows))
	}
	var list []example
	for _, row := range rows {
		var x example
		var name string
		if _, err := fmt.Sscan(row, &name, &x.e, &x.l, &x.vcpus, &x.settings, &x.most, &x.rec); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
		i, ok := limits.Lookup(name)
		if !ok || i.MaxENIs != x.e || i.IPv4PerENI != x.l || i.VCPUs != x.vcpus {
			t.Errorf("%s: the table says %d × %d, %d vCPUs", row, i.MaxENIs, i.IPv4PerENI, i.VCPUs)
		}
		x.i = i
		list = append(list, x)
	}
	return list
}

func TestCalculator(t *testing.T) {
	t.Parallel()
	for _, x := range examples(t) {
		c := Calculator{Instance: x.i, CNIMajor: 1, CNIMinor: 18, PrefixDelegation: x.has("prefix"),
			CustomNetworking: x.has("custom"), MaxENI: x.maxENI(t)}
		if x.has("cni1.8") {
			c.CNIMinor = 8
		}
		if most, rec := c.Result(); most != x.most || rec != x.rec {
			t.Errorf("%s %s: %d %d, want %d %d", x.i.Type, x.settings, most, rec, x.most, x.rec)
		}
	}
}

// TestFileRule: rows with default settings also match the max-pods file.
func TestFileRule(t *testing.T) {
	t.Parallel()
	for _, x := range examples(t) {
		if got, ok := FileRule(x.i.Type); x.settings == "default" && (!ok || got != x.most) {
			t.Errorf("%s: %d, want %d", x.i.Type, got, x.most)
		}
	}
	more := map[string]int{"cr1.8xlarge": 234, "u-9tb1.metal": 147, "f1.16xlarge": 394, "p3.2xlarge": 58,
		"i7ie.48xlarge": 737, "i8ge.48xlarge": 1514} // the file has their older card layout
	for name, want := range more {
		if name == "i8ge.48xlarge" {
			i, _ := limits.Lookup(name)
			want = 24*(i.IPv4PerENI-1) + 2
		}
		if got, ok := FileRule(name); !ok || got != want {
			t.Errorf("%s: %d %v, want %d", name, got, ok, want)
		}
	}
	listed := 0
	for name := range limits.Types() {
		if _, ok := FileRule(name); ok {
			listed++
		}
	}
	if listed != 1391 {
		t.Errorf("%d types listed, the file has 1391", listed)
	}
	for _, name := range []string{"i3.metal", "r9g.large", "m5.larg", ""} {
		if got, ok := FileRule(name); ok {
			t.Errorf("%s: listed with %d", name, got)
		}
	}
}

func lookup(t *testing.T, name string) limits.Instance {
	t.Helper()
	i, ok := limits.Lookup(name)
	if !ok {
		t.Fatalf("%s is not in the table", name)
	}
	return i
}

func TestPublishedRules(t *testing.T) {
	t.Parallel()
	m5, c6g, p5, m54 := lookup(t, "m5.large"), lookup(t, "c6g.medium"), lookup(t, "p5.48xlarge"), lookup(t, "m5.4xlarge")
	tests := []struct {
		name      string
		got, want int
	}{
		{"Karpenter, one reserved", Karpenter(m5, 1, 0, 0), 20},
		{"Karpenter, two reserved", Karpenter(m5, 2, 0, 0), 11},
		{"Karpenter, no interface left", Karpenter(c6g, 2, 0, 0), 0},
		{"Karpenter", Karpenter(m54, 0, 0, 0), 234},
		{"Karpenter, pods per core", Karpenter(m5, 0, 0, 10), 20},
		{"Karpenter, efa-only", Karpenter(p5, 0, 1, 0), 51},
		{"nodeadm", Nodeadm(m54), 234},
		{"base", Base(3, 6), 17},
		{"cap at 30 vCPUs", Cap(30), 110},
		{"cap at 31 vCPUs", Cap(31), 250},
		{"cap unknown", Cap(0), 110},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, tt.got, tt.want)
		}
	}
}

func TestKubeReservedMiB(t *testing.T) {
	t.Parallel()
	figures := map[int]int{8: 343, 11: 376, 17: 442, 29: 574, 58: 893, 110: 1465, 234: 2829, 250: 3005, 737: 8362}
	for pods, want := range figures {
		if got := KubeReservedMiB(pods); got != want {
			t.Errorf("%d pods: %d MiB, want %d", pods, got, want)
		}
	}
}
