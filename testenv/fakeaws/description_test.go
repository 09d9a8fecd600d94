package fakeaws_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/testenv/fakeaws"
)

const described = `{"region":"eu-central-1","latency":{"IMDS":"5ms"},"metadataLag":"1.5s","allow":["DescribeSubnets"],"vpcs":[{"cidrs":["10.0.0.0/16","2001:db8::/56"],"securityGroups":["pods"],
"subnets":[{"id":"subnet-0a","az":"eu-central-1b","cidr":"10.0.0.0/24","ipv6Cidr":"2001:db8:0:1::/64","tags":{"a":"b"},"occupied":3,"fragmented":true,"instances":[{"id":"i-0a","type":"m5.large","privateIp":"10.0.0.9","ipv6":true}]}]}]}`

func TestDescription(t *testing.T) {
	t.Parallel()
	d, err := fakeaws.ParseDescription([]byte(described))
	if err != nil {
		t.Fatal(err)
	}
	if time.Duration(d.MetadataLag) != 1500*time.Millisecond {
		t.Errorf("metadata lag %s", time.Duration(d.MetadataLag))
	}
	w, err := d.Build()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s := w.Snapshot()
	if len(s.Subnets) != 1 || s.Subnets[0].ID != "subnet-0a" || s.Subnets[0].AZ != "eu-central-1b" || s.Subnets[0].Free != 251-1-3-14 {
		t.Errorf("subnets: %+v", s.Subnets)
	}
	if len(s.Instances) != 1 || s.Instances[0].PrimaryIP.String() != "10.0.0.9" || len(s.ENIs[0].IPv6s) != 1 || len(s.SecurityGroups) != 2 {
		t.Errorf("world: %+v", s)
	}
	again, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	d2, err := fakeaws.ParseDescription(again)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, d2, compareNetip); diff != "" {
		t.Errorf("after writing and reading:\n%s", diff)
	}
}

// A description is refused, or yields a consistent world or one of EC2's errors.
func FuzzDescription(f *testing.F) {
	f.Add(described)
	f.Add(`{}`)
	f.Add(`{"vpcs":[{"cidrs":["10.0.0.0/8"],"subnets":[{"cidr":"10.0.0.0/8"}]}]}`)
	f.Add(`{"vpcs":[{"cidrs":["10.0.0.0/16"],"subnets":[{"cidr":"10.0.0.0/28","occupied":-1},{"cidr":"10.0.0.8/28"}]}]} x`)
	f.Fuzz(func(t *testing.T, body string) {
		d, err := fakeaws.ParseDescription([]byte(body))
		if err != nil {
			return
		}
		w, err := d.Build()
		if err != nil {
			return
		}
		defer w.Close()
		if err := w.Check(); err != nil {
			t.Error(err)
		}
	})
}
