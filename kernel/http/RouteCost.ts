// The worst cost of one request, declared with its route. Admission control charges it to the caller
// (`admitRequests.ts`), and a test measures each route's worst request against it.

/** A missing member is 0. */
export interface RouteCost {
  /** Processor time of this process, in milliseconds. */
  readonly cpuMillis: number
  /** Bytes of the answer's body. */
  readonly bytesOut: number
  readonly statements?: number
  /** Rows written for the request, also those written later. */
  readonly rowsWritten?: number
  /** Calls of the ledger's RPC. */
  readonly rpcCalls?: number
}

/** Answered bytes that cost as much as a millisecond of processor time. */
const bytesPerPoint = 262_144
const pointsPerRow = 2
const pointsPerRpcCall = 5

/** The cost in points, the unit of every budget: a point is about a millisecond of processor time. */
export const pointsOf = ({ bytesOut, cpuMillis, rowsWritten = 0, rpcCalls = 0, statements = 0 }: RouteCost): number =>
  Math.ceil(
    cpuMillis + bytesOut / bytesPerPoint + statements + rowsWritten * pointsPerRow + rpcCalls * pointsPerRpcCall
  )
