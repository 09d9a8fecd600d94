package fakecloudwatch_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"

	"cnictl/testenv/aws/fakecloudwatch"
)

const region = "eu-central-1"

func start(t *testing.T, edit ...func(*cloudwatch.Options)) (*fakecloudwatch.Server, *cloudwatch.Client) {
	t.Helper()
	s, err := fakecloudwatch.NewServer(region)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, cloudwatch.New(cloudwatch.Options{
		Region: region, BaseEndpoint: aws.String(s.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIAFAKE", "fake", ""),
	}, edit...)
}

func datum(name string, edit ...func(*types.MetricDatum)) types.MetricDatum {
	d := types.MetricDatum{
		MetricName: aws.String(name), Value: aws.Float64(3), Unit: types.StandardUnitCount,
		Dimensions: []types.Dimension{{Name: aws.String("CLUSTER_ID"), Value: aws.String("blue")}},
	}
	for _, f := range edit {
		f(&d)
	}
	return d
}

func put(t *testing.T, c *cloudwatch.Client, data ...types.MetricDatum) error {
	t.Helper()
	_, err := c.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("Kubernetes"), MetricData: data})
	return err
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func TestServer_Takes(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	at := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	changed := s.Changed()
	if err := put(t, c, datum("a", func(d *types.MetricDatum) { d.Timestamp = &at }), datum("b")); err != nil {
		t.Fatal(err)
	}
	<-changed
	got := s.Data()
	if len(got) != 2 || len(s.Violations()) > 0 || s.Requests() != 1 {
		t.Fatalf("%+v, violations %q", got, s.Violations())
	}
	a := got[0]
	if a.Namespace != "Kubernetes" || a.Name != "a" || a.Value != 3 || a.Unit != "Count" || a.Dimensions["CLUSTER_ID"] != "blue" || !a.Time.Equal(at) || !a.Timestamped || a.Request != 1 {
		t.Errorf("%+v", a)
	}
	if got[1].Timestamped {
		t.Errorf("%+v has no time of its own", got[1])
	}
}

// TestServer_Compressed: the SDK compresses requests from 10 KiB on.
func TestServer_Compressed(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	var data []types.MetricDatum
	for i := range 1000 {
		data = append(data, datum(fmt.Sprintf("metric-%d", i)))
	}
	if err := put(t, c, data...); err != nil || len(s.Data()) != 1000 {
		t.Fatalf("%v; %d data", err, len(s.Data()))
	}
}

func TestServer_Refuses(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*types.MetricDatum){
		"no name":            func(d *types.MetricDatum) { d.MetricName = aws.String(" ") },
		"not a number":       func(d *types.MetricDatum) { d.Value = aws.Float64(math.NaN()) },
		"infinite":           func(d *types.MetricDatum) { d.Value = aws.Float64(math.Inf(1)) },
		"too old":            func(d *types.MetricDatum) { d.Timestamp = aws.Time(time.Now().Add(-15 * 24 * time.Hour)) },
		"too new":            func(d *types.MetricDatum) { d.Timestamp = aws.Time(time.Now().Add(3 * time.Hour)) },
		"no value":           func(d *types.MetricDatum) { d.Value = nil },
		"unknown member":     func(d *types.MetricDatum) { d.StorageResolution = aws.Int32(1) },
		"unit":               func(d *types.MetricDatum) { d.Unit = "Furlongs" },
		"foreign characters": func(d *types.MetricDatum) { d.Dimensions[0].Value = aws.String("blåu") },
		"dimension twice":    func(d *types.MetricDatum) { d.Dimensions = append(d.Dimensions, d.Dimensions[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := start(t)
			err := put(t, c, datum("a", edit))
			if code(err) == "" || len(s.Data()) > 0 || len(s.Violations()) != 1 {
				t.Errorf("error %v, data %v, violations %q", err, s.Data(), s.Violations())
			}
		})
	}
	t.Run("too many", func(t *testing.T) {
		t.Parallel()
		s, c := start(t)
		if err := put(t, c, slices.Repeat([]types.MetricDatum{datum("a")}, 1001)...); code(err) == "" || len(s.Violations()) != 1 {
			t.Errorf("error %.200v, violations %q", err, s.Violations())
		}
	})
	t.Run("another operation", func(t *testing.T) {
		t.Parallel()
		s, c := start(t)
		_, err := c.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{})
		if code(err) != "UnknownOperationException" || len(s.Violations()) != 1 {
			t.Errorf("error %.200v, violations %q", err, s.Violations())
		}
	})
	t.Run("another region", func(t *testing.T) {
		t.Parallel()
		s, c := start(t, func(o *cloudwatch.Options) { o.Region = "us-west-2" })
		if err := put(t, c, datum("a")); code(err) != "MissingAuthenticationToken" || len(s.Violations()) != 1 {
			t.Errorf("error %.200v, violations %q", err, s.Violations())
		}
	})
	t.Run("another protocol", func(t *testing.T) {
		t.Parallel()
		s, _ := start(t)
		resp, err := http.Post(s.URL, "application/x-www-form-urlencoded", strings.NewReader("Action=PutMetricData"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound || len(s.Violations()) != 1 {
			t.Errorf("%s, violations %q", resp.Status, s.Violations())
		}
	})
}
