// Buffers log lines on their way to a stream and writes them together, because one system call per line costs a busy
// process more than making the line. A line waits a moment at most; a line above Info flushes immediately, with all
// before it. The buffer is bounded in bytes, keeps its order, and is never dropped. The process calls `flush` when it
// ends, on every path except SIGKILL.

/** Maximum time that a line stays buffered, in milliseconds. */
const waitMillis = 20
/** Capacity of the buffer, in characters. */
const waitingMax = 32_768

export interface LineWriter {
  /** `isUrgent`: written before this returns. */
  readonly line: (text: string, isUrgent?: boolean) => void
  readonly flush: () => void
}

interface LineWriterOptions {
  /** Takes whole lines, each with its end. */
  readonly write: (lines: string) => void
  /** Calls back once, after this many milliseconds; the timer does not keep the process alive. */
  readonly later: (flush: () => void, millis: number) => void
}

export const makeLineWriter = ({ later, write }: LineWriterOptions): LineWriter => {
  let waiting = ""
  let isAwaited = false
  const flush = () => {
    if (waiting === "") return
    const lines = waiting
    waiting = ""
    write(lines)
  }
  return {
    line: (text, isUrgent = false) => {
      waiting += `${text}\n`
      if (isUrgent || waiting.length >= waitingMax) return flush()
      if (isAwaited) return
      isAwaited = true
      later(() => {
        isAwaited = false
        flush()
      }, waitMillis)
    },
    flush
  }
}
