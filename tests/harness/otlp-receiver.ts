import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import protobuf from "protobufjs";

/** The parts of `opentelemetry/proto/trace/v1/trace.proto` that tests read, with its numbers. */
const { root } = protobuf.parse(`
  syntax = "proto3";
  message AnyValue { string string_value = 1; int64 int_value = 3; double double_value = 4; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message Status { int32 code = 3; }
  message Link { bytes trace_id = 1; bytes span_id = 2; }
  message Span {
    bytes trace_id = 1;
    bytes span_id = 2;
    string trace_state = 3;
    bytes parent_span_id = 4;
    string name = 5;
    int32 kind = 6;
    fixed64 start_time_unix_nano = 7;
    fixed64 end_time_unix_nano = 8;
    repeated KeyValue attributes = 9;
    repeated Link links = 13;
    Status status = 15;
  }
  message ScopeSpans { repeated Span spans = 2; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
`);
const exportRequest = root.lookupType("ExportTraceServiceRequest");

interface KeyValue {
  key: string;
  value: { stringValue?: string; intValue?: number; doubleValue?: number };
}

interface DecodedRequest {
  resourceSpans: { resource: { attributes: KeyValue[] }; scopeSpans: { spans: DecodedSpan[] }[] }[];
}

interface DecodedSpan {
  traceId: Buffer;
  spanId: Buffer;
  parentSpanId: Buffer;
  traceState: string;
  name: string;
  kind: number;
  startTimeUnixNano: number;
  endTimeUnixNano: number;
  attributes: KeyValue[];
  links: { traceId: Buffer; spanId: Buffer }[];
  status: { code: number } | null;
}

export interface ExportedSpan {
  service: string;
  name: string;
  kind: string;
  traceId: string;
  spanId: string;
  /** Empty if there is none. */
  parentSpanId: string;
  traceState: string;
  startMs: number;
  endMs: number;
  attributes: Record<string, string | number | undefined>;
  /** The ids of traces and spans. */
  links: { traceId: string; spanId: string }[];
  hasFailed: boolean;
}

export interface OtlpReceiver {
  url: string;
  /** The bodies that were received, as they were sent. */
  bodies: Buffer[];
  paths: string[];
  spans(): ExportedSpan[];
  connectionCount(): number;
  /** With `hang`, requests get no answer; with `refuse`, they get 400. */
  setMode(mode: "accept" | "hang" | "refuse"): void;
  close(): Promise<void>;
}

/** Starts a collector that receives traces by OTLP over HTTP, as protobuf. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const bodies: Buffer[] = [];
  /** By their ids, because an exporter that gets no answer in time sends its spans again. */
  const spans = new Map<string, ExportedSpan>();
  const paths: string[] = [];
  let connections = 0;
  let mode = "accept";
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    bodies.push(body);
    for (const span of decodeSpans(body)) spans.set(span.spanId, span);
    paths.push(request.url ?? "");
    if (mode !== "hang") response.writeHead(mode === "accept" ? 200 : 400).end();
  });
  server.on("connection", () => {
    connections += 1;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    paths,
    spans: () => [...spans.values()],
    connectionCount: () => connections,
    setMode(newMode) {
      mode = newMode;
    },
    async close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function decodeSpans(body: Buffer): ExportedSpan[] {
  const options = { longs: Number, bytes: Buffer, defaults: true, arrays: true };
  const { resourceSpans } = exportRequest.toObject(exportRequest.decode(body), options) as DecodedRequest;
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(toRecord(resource.attributes)["service.name"]);
    return scopeSpans.flatMap(({ spans }) => spans.map((span) => toExportedSpan(span, service)));
  });
}

const kinds = ["unspecified", "internal", "server", "client", "producer", "consumer"];
const errorStatus = 2;

function toExportedSpan(span: DecodedSpan, service: string): ExportedSpan {
  return {
    service,
    name: span.name,
    kind: kinds[span.kind] ?? "unknown",
    traceState: span.traceState,
    traceId: toHex(span.traceId),
    spanId: toHex(span.spanId),
    parentSpanId: toHex(span.parentSpanId),
    startMs: span.startTimeUnixNano / 1e6,
    endMs: span.endTimeUnixNano / 1e6,
    attributes: toRecord(span.attributes),
    links: span.links.map(({ traceId, spanId }) => ({ traceId: toHex(traceId), spanId: toHex(spanId) })),
    hasFailed: span.status?.code === errorStatus,
  };
}

function toRecord(attributes: KeyValue[]): Record<string, string | number | undefined> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue || value.intValue || value.doubleValue]),
  );
}

function toHex(bytes: Buffer): string {
  return Buffer.from(bytes).toString("hex");
}
