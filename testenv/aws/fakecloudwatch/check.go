package fakecloudwatch

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Limits of PutMetricData (its API reference).
const (
	maxData       = 1000
	maxDimensions = 30
	oldest        = 14 * 24 * time.Hour
	newest        = 2 * time.Hour
)

var (
	namespaceForm = regexp.MustCompile(`^[0-9A-Za-z._\-/#: ]{1,255}$`)
	largest       = math.Pow(2, 360)
)

// units are the ones that clients in this project use.
var units = []string{"Count", "None", "Milliseconds", "Seconds"}

// check returns the data of a request, or the error with which the service would refuse it.
func check(in *request, now time.Time) ([]Datum, *apiError) {
	if in.Namespace == nil || !namespaceForm.MatchString(*in.Namespace) || strings.HasPrefix(*in.Namespace, "AWS/") {
		return nil, refuse("InvalidParameterValue", "Namespace")
	}
	if n := len(in.MetricData); n == 0 || n > maxData {
		return nil, refuse("InvalidParameterValue", "MetricData: %d", n)
	}
	out := make([]Datum, len(in.MetricData))
	for i, d := range in.MetricData {
		var e *apiError
		if out[i], e = checkDatum(d, now); e != nil {
			return nil, e
		}
		out[i].Namespace = *in.Namespace
	}
	return out, nil
}

func checkDatum(d datum, now time.Time) (Datum, *apiError) {
	if !isText(d.MetricName, 255) {
		return Datum{}, refuse("InvalidParameterValue", "MetricName")
	}
	out := Datum{Name: *d.MetricName, Unit: "None", Time: now, Dimensions: map[string]string{}}
	if len(d.Dimensions) > maxDimensions {
		return Datum{}, refuse("InvalidParameterValue", "%s: %d dimensions", out.Name, len(d.Dimensions))
	}
	for _, dim := range d.Dimensions {
		if !isText(dim.Name, 255) || !isText(dim.Value, 1024) || out.Dimensions[*dim.Name] != "" {
			return Datum{}, refuse("InvalidParameterValue", "%s: dimension", out.Name)
		}
		out.Dimensions[*dim.Name] = *dim.Value
	}
	if d.Value == nil {
		return Datum{}, refuse("MissingRequiredParameterException", "%s: Value", out.Name)
	}
	if out.Value = *d.Value; math.IsNaN(out.Value) || math.Abs(out.Value) > largest {
		return Datum{}, refuse("InvalidParameterValue", "%s: Value %v", out.Name, out.Value)
	}
	if d.Unit != nil {
		if out.Unit = *d.Unit; !slices.Contains(units, out.Unit) {
			return Datum{}, refuse("InvalidParameterValue", "%s: Unit %s", out.Name, out.Unit)
		}
	}
	return out, checkTime(d, &out, now)
}

func checkTime(d datum, out *Datum, now time.Time) *apiError {
	if d.Timestamp.Content == nil {
		return nil
	}
	// Tag 1 is seconds since 1970, RFC 8949 §3.4.2.
	seconds, ok := d.Timestamp.Content.(float64)
	if whole, isWhole := d.Timestamp.Content.(uint64); isWhole {
		seconds, ok = float64(whole), true
	}
	if !ok || d.Timestamp.Number != 1 || math.Abs(seconds) > 1e11 {
		return refuse("InvalidParameterValue", "%s: Timestamp %v", out.Name, d.Timestamp)
	}
	out.Time, out.Timestamped = time.UnixMilli(int64(math.Round(seconds*1000))), true
	if age := now.Sub(out.Time); age > oldest || age < -newest {
		return refuse("InvalidParameterValue", "%s: Timestamp %s", out.Name, out.Time)
	}
	return nil
}

// isText reports whether a text is present, not blank, printable ASCII and not too long.
func isText(s *string, longest int) bool {
	return s != nil && strings.TrimSpace(*s) != "" && len(*s) <= longest &&
		!strings.ContainsFunc(*s, func(r rune) bool { return r < ' ' || r > '~' })
}
