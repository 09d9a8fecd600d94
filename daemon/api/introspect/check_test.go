package introspect

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestSummary_Check(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxName+1)
	for body, want := range map[string]string{
		`{}`: "",
		`{"cards":[{"total":9,"assigned":3,"cooling":1,"free":5,"addressLimit":27},{"card":1,"total":1,"free":1}],"maxPods":{"value":110,"terms":[{"name":"ip","value":2147483647}]}}`: "",
		`{"ipFamily":"ipv6","cards":[{"total":281474976710656,"assigned":1,"free":281474976710655,"prefixes":1}]}`:                                                                     "",
		`{"cards":[{"assigned":-9999999999}]}`:                                          "cards[0].assigned is -9999999999 of a total of 0",
		`{"cards":[{"total":9,"assigned":10}]}`:                                         "cards[0].assigned is 10 of a total of 9",
		`{"cards":[{"total":9,"assigned":9,"free":1}]}`:                                 "cards[0].free is 1 of a total of 9",
		`{"cards":[{"total":9,"cooling":-1}]}`:                                          "cards[0].cooling is -1 of a total of 9",
		`{"cards":[{"total":281474976710656}]}`:                                         "cards[0].total is 281474976710656",
		`{"cards":[{"total":1048576},{"card":1,"total":1}]}`:                            "the sum of cards[].total is 1048577",
		`{"cards":[{"total":-1}]}`:                                                      "cards[0].total is -1",
		`{"cards":[{"card":64}]}`:                                                       "cards[0].card is 64",
		`{"cards":[{},{}]}`:                                                             "cards[1].card is 0 for the second time",
		`{"cards":[{"enis":-1}]}`:                                                       "cards[0].enis is -1",
		`{"cards":[{"eniLimit":1000000}]}`:                                              "cards[0].eniLimit is 1000000",
		`{"cards":[{"addressLimit":-5}]}`:                                               "cards[0].addressLimit is -5",
		`{"cards":[{"prefixes":1,"freePrefixes":2}]}`:                                   "cards[0].freePrefixes is 2 of 1 prefixes",
		`{"cards":[` + strings.Repeat("{},", 64) + `{}]}`:                               "cards has 65 items",
		`{"enis":[{"id":"eni-1","total":9,"assigned":3,"free":6,"flags":["primary"]}]}`: "",
		`{"enis":[{},{"total":9,"assigned":3,"free":7}]}`:                               "enis[1].free is 7 of a total of 9",
		`{"enis":[{"device":-1}]}`:                                                      "enis[0].device is -1",
		`{"enis":[` + strings.Repeat("{},", maxENIs) + `{}]}`:                           "enis has 1025 items",
		`{"targets":{"warmIp":-1}}`:                                                     "targets.warmIp is -1",
		`{"maxPods":{"value":-110}}`:                                                    "maxPods.value is -110",
		`{"maxPods":{"terms":[{"value":-1}]}}`:                                          "maxPods.terms[0].value is -1",
		`{"trunk":{"branchUsed":99999999}}`:                                             "trunk.branchUsed is 99999999",
		`{"cooldownSeconds":-1}`:                                                        "cooldownSeconds is -1",
		`{"waitingAdds":-1}`:                                                            "waitingAdds is -1",
		`{"unplaced":99999999}`:                                                         "unplaced is 99999999",
		`{"operations":[{"addresses":-1}]}`:                                             "operations[0].addresses is -1",
		`{"subnets":[{},{"available":-4}]}`:                                             "subnets[1].available is -4",
		`{"lastErrors":[{"count":-1}]}`:                                                 "lastErrors[0].count is -1",
		`{"ec2Calls":[{"calls":9000000000000000000}]}`:                                  "ec2Calls[0].calls is 9000000000000000000",
		`{"ec2Calls":[{"calls":1099511627776},{"calls":1}]}`:                            "the sum of ec2Calls[].calls is 1099511627777",
		`{"adds":{"failed":-1}}`:                                                        "adds.failed is -1",
		`{"dels":{"causes":{"x":-1}}}`:                                                  `dels.causes["x"] is -1`,
		`{"version":"` + long + `"}`:                                                    "version has 257 bytes",
		`{"subnets":[` + strings.Repeat("{},", maxList) + `{}]}`:                        "subnets has 4097 items",
	} {
		var s Summary
		if err := json.Unmarshal([]byte(body), &s); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		got := ""
		if err := s.Check(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.60s: %q, want %q", body, got, want)
		}
	}
}

// FuzzSummary_Check: accepted summaries can be added up over a fleet without overflow.
func FuzzSummary_Check(f *testing.F) {
	f.Add([]byte(`{"ipFamily":"ipv6","cards":[{"total":281474976710656,"free":1}],"ec2Calls":[{"calls":1}]}`))
	f.Add([]byte(`{"cards":[{"assigned":-1}],"adds":{"total":1,"causes":{"x":1}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var s Summary
		if json.Unmarshal(body, &s) != nil || s.Check() != nil {
			return
		}
		const fleet = 5000
		sum := 0
		for _, c := range s.Cards {
			if c.Assigned < 0 || orZero(c.Cooling) < 0 || c.Free < 0 || c.Assigned+orZero(c.Cooling)+c.Free > c.Total {
				t.Fatalf("card %+v", c)
			}
			sum += c.Total * fleet
		}
		if sum < 0 || sum > fleet*maxIPv6 {
			t.Fatalf("sum %d", sum)
		}
	})
}

func TestUnknownTimes_AreNull(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	for want, doc := range map[string]any{
		`{"at":null,"operation":"ADD","cause":"c","message":"m","count":1}`:                   LastError{Operation: "ADD", Cause: "c", Message: "m", Count: 1},
		`{"at":"2026-11-21T14:02:11Z","operation":"ADD","cause":"c","message":"m","count":1}`: LastError{At: at, Operation: "ADD", Cause: "c", Message: "m", Count: 1},
		`{"scope":"attach","id":"","until":null,"cause":"c"}`:                                 Backoff{Scope: "attach", Cause: "c"},
		`{"scope":"attach","id":"","until":"2026-11-21T14:02:11Z","cause":"c"}`:               Backoff{Scope: "attach", Until: at, Cause: "c"},
	} {
		got, err := json.Marshal(doc)
		if err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}
