// The process's stdin and stdout as lines, for a plugin with a protocol over them. The plugin that acquires them has
// exclusive use: nothing else is printed to stdout from then on. The process ends when the peer disconnects.
import { Context, type Effect, type Stream } from "effect"

/** A line that exceeds the limit: its first and last characters. */
export interface LongLine {
  readonly beginning: string
  readonly end: string
}

export class Stdio extends Context.Service<
  Stdio,
  {
    /**
     * Lines of stdin without their ends, until it ends. For a line longer than `lengthMax` characters it keeps only
     * both ends.
     */
    readonly lines: (lengthMax: number) => Stream.Stream<string | LongLine>
    /** Writes one line; resolves when it is handed over. */
    readonly write: (line: string) => Effect.Effect<void>
    /** Ends the process as after a signal. */
    readonly leave: Effect.Effect<void>
    /** Ends when the peer has disconnected. */
    readonly left: Effect.Effect<void>
  }
>()("tollkeeper/platform/Stdio") {}
