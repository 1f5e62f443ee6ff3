package redisclient

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Reason is the error without what Redis may repeat of a command, which could
// be a viewer id: of its answers only the first word, such as OOM or READONLY.
func Reason(err error) string {
	if answer, ok := errors.AsType[redis.Error](err); ok {
		word, _, _ := strings.Cut(answer.Error(), " ")
		return word
	}
	return err.Error()
}
