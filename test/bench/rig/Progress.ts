// A bench's progress on standard error: one line that is overwritten on a terminal, otherwise a line for each step.
import process from "node:process"

const width = 28

export class Progress {
  readonly #name: string
  readonly #startedAt = performance.now()
  #total: number
  #done = 0

  /** `total`: number of steps, if known in advance. */
  constructor(name: string, total: number) {
    this.#name = name
    this.#total = total
  }

  /** A step that begins now. */
  step(what: string): void {
    this.#total = Math.max(this.#total, this.#done + 1)
    const seconds = Math.round((performance.now() - this.#startedAt) / 1_000)
    if (process.stderr.isTTY === true) {
      const filled = Math.floor((width * this.#done) / this.#total)
      const bar = "█".repeat(filled) + "░".repeat(width - filled)
      process.stderr.write(`\r\u001b[2K${this.#name} ${bar} ${seconds} s  ${what}`)
    } else process.stderr.write(`${this.#name} ${this.#done + 1}/${this.#total} ${seconds} s  ${what}\n`)
    this.#done += 1
  }

  /** A permanent line, above the bar. */
  say(line: string): void {
    if (process.stderr.isTTY === true) process.stderr.write("\r\u001b[2K")
    console.log(line)
  }

  end(): void {
    if (process.stderr.isTTY === true) process.stderr.write("\r\u001b[2K")
  }
}
