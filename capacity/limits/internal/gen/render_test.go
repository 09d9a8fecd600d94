package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRender_Current(t *testing.T) {
	t.Parallel()
	facts, err := os.ReadFile("../../instance-limits.csv")
	if err != nil {
		t.Fatal(err)
	}
	want, err := render(facts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../zz_generated.limits.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("zz_generated.limits.go is stale: run go generate ./capacity/limits")
	}
}

func TestRun_WritesWhatRenderMakes(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "x.go")
	if err := run("../../instance-limits.csv", out); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../zz_generated.limits.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("run writes another file than the committed one")
	}
	if err := run("no-such.csv", out); err == nil {
		t.Error("no error for a missing file")
	}
}

func TestRender_Refuses(t *testing.T) {
	t.Parallel()
	head := "instance_type,max_enis,ipv4_per_eni,ipv6_per_eni,hypervisor,bare_metal,trunking_compatible,branch_enis,default_network_card,network_cards,vcpus,memory_mib,arch,cni_max_enis\n"
	good := "m5.large,3,10,10,nitro,false,true,9,0,0:3,2,8192,amd64,3\n"
	if _, err := render([]byte(head + good)); err != nil {
		t.Fatalf("the good row: %v", err)
	}
	tests := map[string]struct{ csv, want string }{
		"empty":          {"", "no instance types"},
		"no rows":        {head, "no instance types"},
		"column renamed": {strings.Replace(head, "vcpus", "cpus", 1) + good, `column 11 is "cpus"`},
		"missing field":  {head + "m5.large,3\n", "wrong number of fields"},
		"twice":          {head + good + good, "does not sort after"},
		"order":          {head + good + strings.Replace(good, "m5.", "m4.", 1), "does not sort after"},
		"name":           {head + strings.Replace(good, "m5.large", "m5 large", 1), "instance_type"},
		"backquote":      {head + strings.Replace(good, "nitro", "`", 1), "hypervisor"},
		"negative":       {head + strings.Replace(good, ",3,10,", ",-3,10,", 1), "max_enis"},
		"boolean":        {head + strings.Replace(good, "false", "no", 1), "bare_metal"},
		"cards":          {head + strings.Replace(good, "0:3", "0:4", 1), "do not give card 0 the 3"},
		"card gap":       {head + strings.Replace(good, "0:3", "0:3|2:3", 1), "not numbered"},
		"card syntax":    {head + strings.Replace(good, "0:3", "0-3", 1), "network_cards"},
	}
	for name, tt := range tests {
		_, err := render([]byte(tt.csv))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tt.want)
		}
	}
}
