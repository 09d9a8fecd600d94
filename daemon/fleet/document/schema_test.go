package document

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv/text/golden"
	"cnictl/testenv/text/jsonschema"
)

// documents are the types of cnictl's documents.
var documents = map[string]any{
	KindAddressList: AddressList{}, KindAddressUseList: AddressUseList{}, KindCandidateList: CandidateList{}, KindCause: CauseDocument{}, KindCauseList: CauseList{}, KindDoctorReport: DoctorReport{}, KindMigration: MigrationCheck{}, KindENIList: ENIList{}, KindEventList: EventList{}, KindFleet: FleetStatus{}, KindLogList: LogList{},
	KindCheckpoint: NodeCheckpoint{}, KindNode: NodeDocument{}, KindNodeList: NodeDocumentList{}, KindMetrics: NodeMetrics{}, KindPodList: NodePodList{}, KindFleetPodList: PodList{},
	KindPlanComparison: PlanComparison{}, KindPodReport: PodReport{}, KindRateList: RateList{}, KindRecording: Recording{},
	KindNodeSettingList: NodeSettingList{}, KindSettings: Settings{}, KindSubnetList: SubnetList{}, KindSubnetMap: SubnetMap{}, KindTrunkList: TrunkList{}, KindCapacitySubnetList: CapacitySubnetList{}, KindCapacityTypeList: CapacityTypeList{}, KindCapacityWhatIfList: CapacityWhatIfList{}, KindCapacityComparison: CapacityComparison{}, KindCapacityForecastList: CapacityForecastList{}, KindCapacityBacktestList: CapacityBacktestList{}, KindCapacityRecommendation: CapacityRecommendation{}, KindCapacityRefresh: CapacityRefresh{}, KindVersion: Versions{},
}

func TestSchemas_AreThoseOfTheTypes(t *testing.T) {
	t.Parallel()
	g := jsonschema.Generator{
		Comments: jsonschema.FieldComments(t, ".", "../../api/introspect"),
		Version:  introspect.APIVersion, Form: jsonschema.Printed,
	}
	for kind, doc := range documents {
		golden.File(t, schemaFile(kind), g.Document(kind, reflect.TypeOf(doc)))
	}
	for _, problem := range g.Problems {
		t.Error(problem)
	}
	files, err := filepath.Glob("schema/*")
	if err != nil || len(files) != len(documents) {
		t.Errorf("%d files for %d documents, %v", len(files), len(documents), err)
	}
}

func schemaFile(kind string) string { return filepath.Join("schema", kind+".json") }

func schemaOf(t *testing.T, kind string) []byte {
	t.Helper()
	raw, err := os.ReadFile(schemaFile(kind))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// filling says what fill puts into a document's members.
type filling int

const (
	full    filling = iota // a value in every member, no nil pointers
	null                   // nil wherever null is allowed
	unknown                // empty strings and zeros
)

// fill sets every member of a value, with one item in each list and map.
func fill(v reflect.Value, how filling) {
	if how != unknown {
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
	}
	switch v.Kind() {
	case reflect.Pointer:
		if how != null {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), full)
		}
	case reflect.Struct:
		fillMembers(v, how)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		if v.Type().Elem().PkgPath() == "net/netip" {
			how = full
		}
		fill(v.Index(0), how)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		item := reflect.New(v.Type().Elem()).Elem()
		fill(item, how)
		v.SetMapIndex(reflect.ValueOf("key"), item)
	case reflect.String:
		if how != unknown {
			v.SetString("text")
		}
	case reflect.Int, reflect.Int64:
		if how != unknown {
			v.SetInt(3)
		}
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Bool:
		v.SetBool(true)
	default:
	}
}

// fillMembers fills a struct's fields; members that are always known get a value even with
// unknown.
func fillMembers(v reflect.Value, how filling) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		known := f.Tag.Get("null") == "never" && f.Type.Kind() != reflect.String
		switch {
		case !f.IsExported():
		case how == unknown && (known || f.Type == reflect.TypeFor[time.Time]() && !jsonschema.Nullable[v.Type().Name()+"."+nameOf(f)]):
			fill(v.Field(i), full)
		default:
			fill(v.Field(i), how)
		}
	}
}

func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// filled returns a document of the kind.
func filled(kind string, how filling) any {
	v := reflect.New(reflect.TypeOf(documents[kind])).Elem()
	fill(v, how)
	v.FieldByName("APIVersion").SetString(introspect.APIVersion)
	v.FieldByName("Kind").SetString(kind)
	return v.Interface()
}

// TestSchemas_FitTheEncoding: whether optional members are set, null or unknown, the encoded
// types fit the schemas, and unknown values are never empty strings.
func TestSchemas_FitTheEncoding(t *testing.T) {
	t.Parallel()
	for kind := range documents {
		for _, how := range []filling{full, null, unknown} {
			body, err := Marshal(filled(kind, how))
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range jsonschema.Problems(t, schemaOf(t, kind), body, jsonschema.Printed) {
				t.Errorf("%s, filling %d: %s", kind, how, problem)
			}
		}
	}
}

// TestDocuments_HaveTheEnvelope: documents made from readings have their time and their
// errors; lists also have metadata, like those of Kubernetes.
func TestDocuments_HaveTheEnvelope(t *testing.T) {
	t.Parallel()
	for kind, doc := range documents {
		members := map[string]bool{}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(doc)) {
			members[nameOf(f)] = true
		}
		want := []string{"apiVersion", "kind"}
		switch {
		case members["items"]:
			want = append(want, "metadata", "partial", "errors", "sampledAt")
		case kind == KindNode: // its error covers the whole node
			want = append(want, "metadata", "error", "sampledAt")
		case kind != KindRecording && kind != KindCause: // from a file and from the catalogue, not from nodes
			want = append(want, "partial", "errors", "sampledAt")
		}
		for _, name := range want {
			if !members[name] {
				t.Errorf("%s has no %s", kind, name)
			}
		}
		if members["error"] && members["errors"] {
			t.Errorf("%s has error beside errors", kind)
		}
	}
}

// TestDocuments_AreWrittenAsTheyEncode: if everything is known, Marshal's output equals
// encoding/json's.
func TestDocuments_AreWrittenAsTheyEncode(t *testing.T) {
	t.Parallel()
	for kind := range documents {
		for _, how := range []filling{full, null} {
			doc := filled(kind, how)
			got, err := Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.Marshal(doc)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, filling %d: got\n%s\nwant\n%s, %v", kind, how, got, want, err)
			}
		}
	}
}

// TestSchemas_OfWhatIsPrinted validates cnictl's golden output against the schemas.
func TestSchemas_OfWhatIsPrinted(t *testing.T) {
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
		if json.Unmarshal([]byte(body), &head) != nil || head.APIVersion != introspect.APIVersion {
			continue
		}
		if documents[head.Kind] == nil {
			continue // one of the daemon's documents, passed through
		}
		seen++
		for _, problem := range jsonschema.Problems(t, schemaOf(t, head.Kind), []byte(body), jsonschema.Printed) {
			t.Errorf("%s: %s", filepath.Base(filepath.Dir(file)), problem)
		}
	}
	if seen < 5 {
		t.Errorf("%d documents among %d golden files", seen, len(files))
	}
}
