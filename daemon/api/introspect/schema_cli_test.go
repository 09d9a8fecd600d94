package introspect

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// cliDocuments are the types of cnictl's documents.
var cliDocuments = map[string]any{
	KindAddressList: AddressList{}, KindENIList: ENIList{}, KindEventList: EventList{}, KindFleet: FleetStatus{}, KindLogList: LogList{},
	KindCheckpoint: NodeCheckpoint{}, KindNode: NodeIPAM{}, KindNodeList: NodeIPAMList{}, KindMetrics: NodeMetrics{}, KindPodList: NodePodList{},
	KindPlanComparison: PlanComparison{}, KindPodReport: PodReport{}, KindRateList: RateList{}, KindRecording: Recording{},
	KindNodeSettingList: NodeSettingList{}, KindSettings: Settings{}, KindSubnetList: SubnetList{}, KindSubnetMap: SubnetMap{}, KindTrunkList: TrunkList{}, KindVersion: Versions{},
}

func TestCLISchemas_AreThoseOfTheTypes(t *testing.T) {
	t.Parallel()
	g := generator{comments: fieldComments(t)}
	if kinds := CLIKinds(); !slices.IsSorted(kinds) || len(kinds) != len(cliDocuments) {
		t.Errorf("kinds %v", kinds)
	}
	for kind, doc := range cliDocuments {
		got := g.document(kind, reflect.TypeOf(doc))
		path := filepath.Join("schema", "cli", kind+".json")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Error(err)
			}
			continue
		}
		if want, ok := CLISchema(kind); !ok || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (go test ./daemon/api/introspect -update); wanted\n%s", path, got)
		}
	}
	for _, problem := range g.problems {
		t.Error(problem)
	}
	if _, ok := CLISchema("../NodePod"); ok {
		t.Error("a schema that is none")
	}
	files, err := filepath.Glob("schema/cli/*")
	if err != nil || len(files) != len(cliDocuments) {
		t.Errorf("%d files for %d documents, %v", len(files), len(cliDocuments), err)
	}
}

// fill gives every member of a value something: an item in lists and maps, pointers
// that lead somewhere, or nothing at all where nothing may stand.
func fill(v reflect.Value, null bool) {
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)))
		return
	case reflect.TypeFor[netip.Addr]():
		v.Set(reflect.ValueOf(netip.MustParseAddr("10.0.0.1")))
		return
	case reflect.TypeFor[netip.Prefix]():
		v.Set(reflect.ValueOf(netip.MustParsePrefix("10.0.0.0/28")))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !null {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), null)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), null)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), null)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		item := reflect.New(v.Type().Elem()).Elem()
		fill(item, null)
		v.SetMapIndex(reflect.ValueOf("key"), item)
	case reflect.String:
		v.SetString("text")
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Bool:
		v.SetBool(true)
	default:
	}
}

// TestCLISchemas_FitTheEncoding: what the types encode to, with all that may be null
// there and not there, fits the schemas.
func TestCLISchemas_FitTheEncoding(t *testing.T) {
	t.Parallel()
	for kind, doc := range cliDocuments {
		for _, null := range []bool{false, true} {
			v := reflect.New(reflect.TypeOf(doc)).Elem()
			fill(v, null)
			v.FieldByName("APIVersion").SetString(APIVersion)
			v.FieldByName("Kind").SetString(kind)
			body, err := json.Marshal(v.Interface())
			if err != nil {
				t.Fatal(err)
			}
			raw, ok := CLISchema(kind)
			if !ok {
				t.Fatalf("no schema of %s", kind)
			}
			for _, problem := range validateBy(t, raw, body) {
				t.Errorf("%s, null %v: %s", kind, null, problem)
			}
		}
	}
}

// TestCLISchemas_OfWhatIsPrinted holds what cnictl prints, as its golden files have it,
// to the schemas.
func TestCLISchemas_OfWhatIsPrinted(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../cmd/cnictl/internal/*/testdata/*/*/output.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(string(content), "--- stdout\n")
		body, _, _ = strings.Cut(body, "--- stderr\n")
		var head struct{ APIVersion, Kind string }
		if json.Unmarshal([]byte(body), &head) != nil || head.APIVersion != APIVersion {
			continue
		}
		raw, ok := CLISchema(head.Kind)
		if !ok {
			continue // a document of the daemon's, as it came
		}
		seen++
		for _, problem := range validateBy(t, raw, []byte(body)) {
			t.Errorf("%s: %s", filepath.Base(filepath.Dir(file)), problem)
		}
	}
	if seen < 5 {
		t.Errorf("%d documents among %d golden files", seen, len(files))
	}
}
