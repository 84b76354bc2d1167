//! Coverage of the test cases of grpc-ecosystem's grpc-httpjson-transcoding, the library in Envoy and Google's proxies.
//! `google.api.http` has no official test suite.
//!
//! `docs/testing.md` has the number of cases and of those that hold. The cases are theirs, tests and values are ours.
//! If a case holds except for a part, that part is noted.

use std::fs;
use std::path::Path;

/// Folders of our tests.
const FOLDERS: [&str; 4] = ["src/transcoding", "tests/it", "../openapi/src/rules", "../openapi/tests/it"];

/// One line per case: our test if it holds, `!` and the reason if the specification differs, `-` and the reason if it
/// does not apply.
const VECTORS: &str = "
path_matcher_test
WildCardMatchesRoot: routes::literal_wins_over_wildcard
WildCardMatches: routes::literal_wins_over_wildcard
VariableBindings: routes::variables_capture_path_segments
PercentEscapesUnescapedForSingleSegment: routes::multi_segment_variable_keeps_encoded_slashes
PercentEscapesUnescapedForSingleSegmentAllAsciiChars: percent::ascii_round_trips
PercentEscapesNotUnescapedForMultiSegment1: routes::multi_segment_variable_keeps_encoded_slashes
PercentEscapesNotUnescapedForMultiSegment2: routes::multi_segment_variable_keeps_encoded_slashes
OnlyUnreservedCharsAreUnescapedForMultiSegmentMatchUnescapeAllExceptReservedImplicit: ! all but %2F is decoded
OnlyUnreservedCharsAreUnescapedForMultiSegmentMatchUnescapeAllExceptReservedExplicit: ! all but %2F is decoded
OnlyUnreservedCharsAreUnescapedForMultiSegmentMatchUnescapeAllExceptSlash: percent::each_component_has_its_decoding_rule
OnlyUnreservedCharsAreUnescapedForMultiSegmentMatchUnescapeAll: - an option; %2F stays as the specification has it
CustomVerbIssue: routes::custom_verb_wins_over_colon_in_segment
MatchUnregisteredCustomVerb: - an option; a colon in a segment is no verb unless there is one of that name
VariableBindingsWithCustomVerb: routes::custom_verb_wins_over_colon_in_segment
ConstantSuffixesWithVariable: routes::longest_suffix_after_double_star_wins
InvalidTemplates: template::invalid_template_is_reported_with_column
CustomVerbMatches: routes::custom_verb_wins_over_colon_in_segment
CustomVerbMatch2: routes::custom_verb_wins_over_colon_in_segment
CustomVerbMatch3: routes::custom_verb_wins_over_colon_in_segment
CustomVerbMatch4: routes::custom_verb_wins_over_colon_in_segment
CustomVerbMatch5: routes::custom_verb_wins_over_colon_in_segment
RejectPartialMatches: routes::literal_template_matches_complete_path
LookupReturnsNullIfMatcherEmpty: routes::empty_router_matches_nothing
LookupSimplePaths: routes::literal_template_matches_complete_path
ReplacevoidForPath: - two routes of one form are told when the server starts
LookupReturnsNullForOverspecifiedPath: routes::literal_template_matches_complete_path
ReturnNullvoidSharedPtrForUnderspecifiedPath: routes::literal_template_matches_complete_path
DifferentHttpMethod: routes::methods_of_http
BodyFieldPathTest: ! a body is a field of the message itself, and no deeper one
VariableBindingsWithQueryParams: requests::variables_of_paths
VariableBindingsWithQueryParamsEncoding: percent::each_component_has_its_decoding_rule
QueryParameterNotUnescapePlus: requests::plus_is_a_space_if_enabled
QueryParameterUnescapePlus: requests::plus_is_a_space_if_enabled
VariableBindingsWithQueryParamsAndSystemParams: - an option; what begins with a dollar sign is left alone
WildCardMatchesManyWithoutStackOverflow: routes::many_slashes_are_matched_in_linear_time
LookupSilentlyFailsOnDuplicate: - two routes of one form are told when the server starts
RegisterFailsOnDuplicateIfOptIn: rules::routes_of_the_same_form_conflict

http_template_test
ParseTest1: template::templates
ParseTest2: template::templates
ParseTest3a: template::templates
ParseTest3b: template::templates
ParseTest4a: template::verbs
ParseTest4b: template::verbs
ParseTest5: template::templates
ParseTest6: template::templates
ParseTest7: template::templates
ParseTest8: template::templates
ParseTest9: template::templates
ParseTest10: template::templates
ParseTest11: template::templates
ParseTest12: template::templates
ParseTest13: template::templates
ParseTest14: template::templates
ParseTest15: template::templates
ParseTest16: template::verbs
CustomVerbTests: template::verbs
MoreVariableTests: template::templates
VariableAndCustomVerbTests: template::verbs
RootPATH: template::templates
ErrorTests: template::invalid_template_is_reported_with_column
ParseVerbTest2: template::verbs
ParseVerbTest3: template::verbs
ParseVerbTest4: template::verbs
ParseNonVerbTest: template::invalid_template_is_reported_with_column

json_request_translator_test: objects and arrays that end in a comma, which many of them have, are no JSON here
Simple: transcoded::path_query_and_body_form_the_message
Nested: requests::body_is_the_message_or_a_field
Prefix: requests::body_is_the_message_or_a_field
Bindings: requests::path_overrides_body
MorePrefixAndBindings: ! a body is a field of the message itself, and no deeper one
OnlyBindings: requests::variables_of_paths
ScalarBody: requests::body_is_the_message_or_a_field
StructValueFlat: requests::struct_may_be_the_message
StructValueNested: requests::struct_may_be_the_message
Empty: requests::body_is_the_message_or_a_field
Large: transcoded::message_of_any_size_arrives_in_any_pieces
OneByteChunks: transcoded::message_of_any_size_arrives_in_any_pieces
UnknownsIgnored: requests::unknown_fields_may_be_ignored, which is an option, as ProtoJSON has it
ErrorInvalidJson: requests::body_that_is_not_json_is_rejected, but that spaces are an empty message
WrongBindingType: requests::variables_of_paths
StreamingSimple: transcoded_streams::requests_are_json_lines_or_arrays
StreamingNested: transcoded_streams::stream_may_have_any_length
StreamingPrefixAndBindings: transcoded_streams::streamed_message_may_be_a_field
Streaming1KMessages: transcoded_streams::stream_may_have_any_length
StreamingScalars: transcoded_streams::streamed_message_may_be_a_field
StreamingArrays: transcoded_streams::streamed_message_may_be_a_field
StreamingEmptyStream: transcoded_streams::requests_are_json_lines_or_arrays
StreamingEmptyMessages: transcoded_streams::stream_may_have_any_length
StreamingErrorNotAnArray: - messages behind each other are a stream, too

response_to_json_translator_test
Simple: responses::defaults_are_printed_in_present_messages
SimpleAlwaysPrintPrimitiveFields: responses::defaults_are_printed_in_present_messages
Nested: responses::defaults_are_printed_in_present_messages
StructValueFlat: responses::defaults_are_printed_in_present_messages
StructValueNested: responses::defaults_are_printed_in_present_messages
NestedAlwaysPrintPrimitiveFields: responses::defaults_are_printed_in_present_messages
Empty: responses::defaults_are_printed_in_present_messages
EmptyAlwaysPrintPrimitiveFields: responses::defaults_are_printed_in_present_messages
DifferentSizes: transcoded::message_of_any_size_arrives_in_any_pieces
StreamingOneMessage: transcoded_streams::stream_may_have_any_length
StreamingThreeMessages: transcoded_streams::stream_may_have_any_length
StreamingNoMessages: transcoded_streams::stream_may_have_any_length
StreamingEmptyMessage: transcoded_streams::stream_may_have_any_length
Streaming50Messages: transcoded_streams::stream_may_have_any_length
StreamingNested: transcoded_streams::stream_may_have_any_length
StreamingDifferentSizes: transcoded_streams::stream_may_have_any_length
ErrorInvalidType: - a type that the descriptors lack is told when the server starts
DirectTest: - answers come as messages from the process itself, and not in pieces of envelopes
StreamingDirectTest: transcoded_streams::each_message_is_sent_immediately
StreamingNewlineDelimitedDirectTest: transcoded_streams::each_message_is_sent_immediately
StreamingSSEStyleDelimitedDirectTest: transcoded_streams::each_message_is_sent_immediately, and the event `end`
Streaming5KMessages: transcoded_streams::stream_may_have_any_length
IncompleteFrameHeader: - answers come as messages from the process itself, and not in envelopes
InvalidFrameFlag: - answers come as messages from the process itself, and not in envelopes
IncompleteFrame: - answers come as messages from the process itself, and not in envelopes

request_weaver_test
PassThrough: requests::path_variables_are_merged_into_body_at_any_depth
Level0Bindings: requests::path_variables_are_merged_into_body_at_any_depth
Level1Bindings: requests::path_variables_are_merged_into_body_at_any_depth
Level2Bindings: requests::path_variables_are_merged_into_body_at_any_depth
Level2WeaveNewSubTree: requests::path_variables_are_merged_into_body_at_any_depth
MixedBindings: requests::path_variables_are_merged_into_body_at_any_depth
MoreMixedBindings: requests::path_variables_are_merged_into_body_at_any_depth
CollisionIgnored: ! the body has what the path does not bind: the path goes first
CollisionReportedInvalidBinding: requests::value_in_path_overrides_value_in_body
CollisionNotReported: requests::value_in_path_overrides_value_in_body
CollisionReported: - an option; the path goes first
CollisionRepeated: ! with all of the body there are no parameters, and a part of a path is one value
IgnoreListTest: requests::path_variables_are_merged_into_body_at_any_depth
";

#[test]
fn every_vector_names_an_existing_test() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_to_string(package.join("../../docs/testing.md")).unwrap();
    for suite in VECTORS.trim().split("\n\n") {
        let (name, cases) = suite.split_once('\n').unwrap();
        let [mut hold, mut differ, mut do_not_apply] = [0; 3];
        for case in cases.lines() {
            let (_, ours) = case.split_once(": ").unwrap();
            match &ours[..2] {
                "! " => differ += 1,
                "- " => do_not_apply += 1,
                _ => {
                    hold += 1;
                    let (test, _) = ours.split_once(',').unwrap_or((ours, ""));
                    let (module, function) = test.split_once("::").unwrap();
                    let is_there = FOLDERS.into_iter().any(|folder| {
                        let text = fs::read_to_string(package.join(format!("{folder}/{module}.rs")));
                        text.is_ok_and(|text| text.contains(&format!("fn {function}()")))
                    });
                    assert!(is_there, "{case}");
                }
            }
        }
        let (name, _) = name.split_once(':').unwrap_or((name, ""));
        let cells = [cases.lines().count(), hold, differ, do_not_apply].map(|count| match count {
            0 => String::new(),
            count => format!(" {count}"),
        });
        let row = format!("| `{name}` |{} |", cells.join(" |"));
        assert!(docs.contains(&row), "{row}");
    }
}
