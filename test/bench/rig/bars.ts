// A bar is a figure with its required limit. An unmeasured figure (NaN) misses every bar.
export interface Bar {
  readonly name: string
  /** NaN when it is unknown. */
  readonly value: number
  readonly atMost?: number
  readonly atLeast?: number
  readonly holds: boolean
}

export const atMost = (name: string, value: number, bar: number): Bar => ({
  name,
  value,
  atMost: bar,
  holds: value <= bar
})

export const atLeast = (name: string, value: number, bar: number): Bar => ({
  name,
  value,
  atLeast: bar,
  holds: value >= bar
})

const number = (value: number): string => (Number.isNaN(value) ? "unknown" : String(Number(value.toPrecision(3))))

/** A bar as a part of a report's line. */
export const barLine = ({ atLeast, atMost, holds, name, value }: Bar): string =>
  `${name} ${number(value)} (${atMost === undefined ? `≥ ${number(atLeast!)}` : `≤ ${number(atMost)}`}${
    holds ? "" : ", MISSED"
  })`
