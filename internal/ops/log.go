package ops

import (
	"fmt"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Formats of a log.
const (
	JSON    = "json"    // one object a line, for machines
	Console = "console" // one line for a person
)

// NewLogger returns a logger that writes to w, and its level, which may be
// changed while the program runs. level is debug, info, warn or error.
func NewLogger(w io.Writer, level, format string) (*zap.Logger, zap.AtomicLevel, error) {
	at, err := zap.ParseAtomicLevel(level)
	if err != nil {
		return nil, at, fmt.Errorf("log.level: %w", err)
	}
	return zap.New(zapcore.NewCore(encoder(format), zapcore.Lock(zapcore.AddSync(w)), at)), at, nil
}

func encoder(format string) zapcore.Encoder {
	c := zap.NewProductionEncoderConfig()
	c.TimeKey = "time"
	c.EncodeTime = zapcore.RFC3339TimeEncoder
	c.EncodeDuration = zapcore.StringDurationEncoder
	if format == Console {
		c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05")
		c.EncodeLevel = zapcore.CapitalLevelEncoder
		return zapcore.NewConsoleEncoder(c)
	}
	return zapcore.NewJSONEncoder(c)
}
