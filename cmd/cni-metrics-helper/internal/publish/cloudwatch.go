package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"
)

// Names that upstream writes, and that dashboards and alarms query.
const (
	metricNamespace = "Kubernetes"
	dimension       = "CLUSTER_ID"
	perRequest      = 20 // data points; CloudWatch takes 1,000
)

// CloudWatch sends the queued data.
type CloudWatch struct {
	client  *cloudwatch.Client
	cluster string
	queue   *Queue
}

// NewCloudWatch makes a sender. It makes no requests.
func NewCloudWatch(cfg aws.Config, cluster, userAgent string, q *Queue) *CloudWatch {
	client := cloudwatch.NewFromConfig(cfg, func(o *cloudwatch.Options) {
		o.APIOptions = append(o.APIOptions, awsmiddleware.AddUserAgentKeyValue("cni-metrics-helper", userAgent))
	})
	return &CloudWatch{client, cluster, q}
}

// Send empties the queue. It stops at the first request that failed but may succeed later:
// its data are put back, with their times, for the next Send. Data that CloudWatch will never
// accept are dropped; the error says how many.
func (c *CloudWatch) Send(ctx context.Context) (sent int, err error) {
	var refused []error
	for {
		data := c.queue.take(perRequest)
		if len(data) == 0 {
			return sent, errors.Join(refused...)
		}
		err := c.put(ctx, data)
		switch {
		case err == nil:
			sent += len(data)
		case hopeless(err):
			refused = append(refused, fmt.Errorf("drop %d data points: %w", len(data), err))
		default:
			c.queue.giveBack(data)
			return sent, errors.Join(append(refused, err)...)
		}
	}
}

func (c *CloudWatch) put(ctx context.Context, data []Datum) error {
	in := &cloudwatch.PutMetricDataInput{Namespace: aws.String(metricNamespace)}
	for _, d := range data {
		in.MetricData = append(in.MetricData, types.MetricDatum{
			MetricName: aws.String(d.Name),
			Dimensions: []types.Dimension{{Name: aws.String(dimension), Value: aws.String(c.cluster)}},
			Timestamp:  aws.Time(d.At),
			Value:      aws.Float64(d.Value),
			Unit:       types.StandardUnitCount, // for all, even milliseconds: as upstream
		})
	}
	if _, err := c.client.PutMetricData(ctx, in); err != nil {
		return fmt.Errorf("send %d data points to CloudWatch: %w", len(data), err)
	}
	return nil
}

// hopelessCodes are CloudWatch's error codes for data that it will never accept.
var hopelessCodes = []string{
	"InvalidParameterValue", "InvalidParameterValueException",
	"InvalidParameterCombination", "InvalidParameterCombinationException",
	"MissingParameter", "MissingRequiredParameterException", "InvalidFormat", "InvalidFormatFault",
	"ValidationError", "ValidationException", "SerializationException",
}

func hopeless(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && slices.Contains(hopelessCodes, api.ErrorCode())
}
