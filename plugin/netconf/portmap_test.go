package netconf

import (
	"encoding/json"
	"testing"
)

// TestParsePortmap: only the configuration of a pod without host ports counts as idle.
func TestParsePortmap(t *testing.T) {
	t.Parallel()
	const result = `{"cniVersion":"0.4.0","ips":[]}`
	for in, want := range map[string]bool{
		`{"cniVersion":"0.4.0","name":"aws-cni","type":"portmap","snat":true,"capabilities":{"portMappings":true},"runtimeConfig":{},"prevResult":` + result + `}`: true,
		`{"name":"n","runtimeConfig":{"portMappings":[]}}`:                      true,
		`{"name":"n","runtimeConfig":{"portMappings":null,"bandwidth":{}}}`:     true,
		`{"name":"n","runtimeConfig":null}`:                                     true,
		`{"name":"n"}`:                                                          true,
		`{"name":"n","runtimeConfig":{"portMappings":[{"hostPort":80}]}}`:       false,
		`{"name":"n","runtimeConfig":{"portmappings":[{"hostPort":80}]}}`:       false,
		`{"name":"n","runtimeConfig":{"portMappings":{}}}`:                      false,
		`{"name":"n","runtimeConfig":[]}`:                                       false,
		`{"name":"n","runtimeConfig":{},"runtimeConfig":{"portMappings":[{}]}}`: false,
		`{"name":"n","RuntimeConfig":{"portMappings":[{}]}}`:                    false,
		`{"name":"n","backend":"nftables"}`:                                     false,
		`{"name":"n","markMasqBit":40}`:                                         false,
		`{"name":"n","snat":"yes"}`:                                             false,
		`{"name":"n","capabilities":{"portMappings":"yes"}}`:                    false,
		`{"name":"n","prevResult":null}`:                                        false,
		`{"name":"n","cniVersion":4}`:                                           false,
		`{"name":""}`:                                                           false, `{"name":"a/b"}`: false, `{}`: false, `[]`: false, `null`: false, ``: false, `{"name":"n"`: false,
	} {
		if got := ParsePortmap([]byte(in)); got.Idle != want {
			t.Errorf("%s: idle %t", in, got.Idle)
		}
	}
}

// FuzzParsePortmap: a configuration that we consider idle is also idle according to
// encoding/json with the keys of the reference plugin.
func FuzzParsePortmap(f *testing.F) {
	f.Add([]byte(`{"cniVersion":"0.4.0","name":"aws-cni","type":"portmap","snat":true,"capabilities":{"portMappings":true},"runtimeConfig":{"portMappings":[]},"prevResult":{"ips":[]}}`))
	f.Add([]byte(`{"name":"n","runtimeConfig":{"portMappings":null,"PORTMAPPINGS":[{"hostPort":1}]}}`))
	f.Add([]byte(`{"name":"n","\u006eame":"m","runtimeConfig":{"port\u004dappings":[1]}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		got := ParsePortmap(in)
		if !got.Idle {
			return
		}
		var want struct {
			CNIVersion   string          `json:"cniVersion"`
			Name         string          `json:"name"`
			Type         string          `json:"type"`
			SNAT         *bool           `json:"snat"`
			Capabilities map[string]bool `json:"capabilities"`
			PrevResult   map[string]any  `json:"prevResult"`
			Backend      *string         `json:"backend"`
			ConditionsV4 *[]string       `json:"conditionsV4"`
			ConditionsV6 *[]string       `json:"conditionsV6"`
			MasqAll      bool            `json:"masqAll"`
			MarkMasqBit  *int            `json:"markMasqBit"`
			ExternalMark *string         `json:"externalSetMarkChain"`
			IPAM         any             `json:"ipam"`
			Runtime      struct {
				PortMaps []any `json:"portMappings"`
			} `json:"runtimeConfig"`
		}
		if err := json.Unmarshal(in, &want); err != nil {
			t.Fatalf("idle, and encoding/json says %v", err)
		}
		if len(want.Runtime.PortMaps) > 0 || want.Backend != nil || want.ConditionsV4 != nil || want.ConditionsV6 != nil ||
			want.MasqAll || want.MarkMasqBit != nil || want.ExternalMark != nil || want.IPAM != nil {
			t.Fatalf("not idle: %+v", want)
		}
		if want.Name != got.Name || want.CNIVersion != got.CNIVersion || (want.PrevResult == nil) != (len(got.RawPrevResult) == 0) {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}
